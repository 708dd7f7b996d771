#!/usr/bin/env node
// SPDX-License-Identifier: MIT
// An executor in JavaScript: reads one document from stdin, answers with one envelope.
//
//   app.command("resize", ["node", "examples/executors/resize.mjs"])
//   resize.enqueue(width=4000, height=3000, fit=1000)
import { readFileSync, writeSync } from "node:fs";

const { spec, context } = JSON.parse(readFileSync(0, "utf8"));
const answer = (envelope) =>
  writeSync(context.result_fd ?? 1, JSON.stringify(envelope) + "\n");

const { width, height, fit } = spec.kwargs;
console.log(`attempt ${context.attempt} of run ${context.run}: ${width}x${height} into ${fit}`);

if (![width, height, fit].every((n) => Number.isInteger(n) && n > 0)) {
  // No retry will turn this into a picture.
  answer({
    ok: false,
    error: { type: "BadSize", message: "width, height and fit are positive whole numbers" },
    fatal: true,
  });
} else {
  const scale = Math.min(1, fit / Math.max(width, height));
  answer({
    ok: true,
    result: { width: Math.round(width * scale), height: Math.round(height * scale) },
  });
}
