// SPDX-License-Identifier: MIT
// Checks spec_hash.json without a line of Python: an implementation of docs/reference/spec-hash.md
// in a language whose own JSON.parse would lose big integers and accept a key given twice.
// Run: node contracts/check_spec_hash.mjs
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

const DEPTH_MAX = 500;
const INT_LENGTH_MAX = 4300;
const SPACE = /[ \t\r\n]*/y;
const NUMBER = /-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?/y;
const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const WORD = /true|false|null/y;

/** Writes JSON text in its canonical form; throws if the text must be refused. */
export function canonical(text) {
  let at = 0;

  function take(pattern) {
    pattern.lastIndex = at;
    const match = pattern.exec(text);
    if (match) at = pattern.lastIndex;
    return match;
  }

  function accept(mark) {
    take(SPACE);
    if (text[at] !== mark) return false;
    at += 1;
    return true;
  }

  function need(mark) {
    if (!accept(mark)) throw new Error(`expected ${mark} at ${at}`);
  }

  function value(depth) {
    take(SPACE);
    if (text[at] === "{") return object(depth + 1);
    if (text[at] === "[") return array(depth + 1);
    if (text[at] === '"') return JSON.stringify(string());
    const word = take(WORD);
    return word ? word[0] : number();
  }

  function number() {
    const match = take(NUMBER);
    if (!match) throw new Error(`no JSON value at ${at}`);
    const [token, whole, fraction, exponent] = match;
    if (fraction === undefined && exponent === undefined) {
      // An integer never becomes a Number: its token is already its exact spelling.
      if (token.length > INT_LENGTH_MAX) throw new Error("integer too long");
      return whole === "0" ? "0" : token;
    }
    const float = Number(token);
    if (!Number.isFinite(float)) throw new Error("number out of range");
    return String(float); // Number::toString; it writes -0 as 0.
  }

  function string() {
    const match = take(STRING);
    if (!match) throw new Error(`bad string at ${at}`);
    const decoded = JSON.parse(match[0]);
    if (!decoded.isWellFormed()) throw new Error("lone surrogate");
    return decoded;
  }

  function array(depth) {
    deepen(depth);
    need("[");
    if (accept("]")) return "[]";
    const items = [];
    do items.push(value(depth));
    while (accept(","));
    need("]");
    return `[${items.join(",")}]`;
  }

  function object(depth) {
    deepen(depth);
    need("{");
    if (accept("}")) return "{}";
    const members = new Map();
    do {
      take(SPACE);
      const key = string();
      if (members.has(key)) throw new Error("key given twice");
      need(":");
      members.set(key, value(depth));
    } while (accept(","));
    need("}");
    // The default sort compares UTF-16 code units, as the canonical form does.
    const keys = [...members.keys()].sort();
    return `{${keys.map((key) => `${JSON.stringify(key)}:${members.get(key)}`).join(",")}}`;
  }

  function deepen(depth) {
    if (depth > DEPTH_MAX) throw new Error("nested too deep");
  }

  const form = value(0);
  take(SPACE);
  if (at !== text.length) throw new Error(`more text at ${at}`);
  return form;
}

function faultOf(vector) {
  const form = canonical(vector.text);
  if (form !== vector.canonical) return `canonical form is ${form}`;
  const sha256 = createHash("sha256").update(form, "utf8").digest("hex");
  return sha256 === vector.sha256 ? null : `hash is ${sha256}`;
}

function isRefused(text) {
  try {
    canonical(text);
    return false;
  } catch (error) {
    // A stack overflow or a mistake in this file is no refusal.
    return error.constructor === Error;
  }
}

function check(contract) {
  const faults = [];
  for (const vector of contract.vectors) {
    const fault = faultOf(vector);
    if (fault) faults.push(`${vector.name}: ${fault}`);
  }
  for (const { name, text } of contract.refused) {
    if (!isRefused(text)) faults.push(`${name}: must be refused`);
  }
  return faults;
}

const source = process.argv[2] ?? new URL("spec_hash.json", import.meta.url);
const contract = JSON.parse(readFileSync(source, "utf8"));
const faults = check(contract);
for (const fault of faults) console.error(fault);
console.log(
  `${contract.vectors.length} vectors, ${contract.refused.length} refusals, ${faults.length} faults`,
);
process.exitCode = faults.length ? 1 : 0;
