// SPDX-License-Identifier: MIT
// A worker in JavaScript without an SDK, written from docs/reference/protocol.md.
//
//   BYROTE_SERVICE_URL=http://127.0.0.1:8700 BYROTE_SERVICE_TOKEN=byr_… node worker.mjs
//
// It claims, renews, finishes and releases; stops a run that was cancelled, timed out or lost;
// and on SIGTERM finishes what fits into GRACE_S, then releases the rest. A second SIGTERM
// releases everything at once. It exits with 0 after a stop and with 1 when the token is refused.

import { randomUUID } from "node:crypto";

const url = process.env.BYROTE_SERVICE_URL ?? "http://127.0.0.1:8700";
const secret = process.env.BYROTE_SERVICE_TOKEN;
const queue = process.env.QUEUE ?? "default";
const leaseFor = Number(process.env.LEASE_S ?? 30);
const grace = Number(process.env.GRACE_S ?? 25);
const slots = Number(process.env.SLOTS ?? 4);
const worker = `node-${process.pid}`;

// Handlers by task name and version. A run may be executed more than once: make them idempotent.
// `signal` is aborted when the run must stop; a handler that ignores it keeps running, but its
// result is not sent. JSON.parse rounds integers beyond 2^53: send such values as strings.
const handlers = {
  "shout@1": async (payload) => String(payload).toUpperCase(),
  "slow@1": async (payload, { signal }) => {
    await pause(payload.ms, signal);
    return payload.ms;
  },
  "large@1": async (payload) => "x".repeat(payload.size),
  "broken@1": async () => { throw new TypeError("this never works"); },
};

const held = new Map(); // run id -> { token, deadline, controller, ended }
let stopping = false;
let stopped = () => {};
const stop = new Promise((resolve) => { stopped = resolve; });

// -- Requests --------------------------------------------------------------------------------------

class Refused extends Error {
  constructor(status, problem) {
    super(`${status} ${problem.code ?? ""}: ${problem.detail ?? "no detail"}`);
    this.status = status;
  }
  get isFinal() { return this.status === 401 || this.status === 403; }
}

function now() { return performance.now() / 1000; }

function pause(ms, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => { clearTimeout(timer); reject(signal.reason); });
  });
}

// One request. Throws Refused when the service declined it, anything else when the answer was lost.
async function send(method, path, body, signal) {
  const answer = await fetch(url + path, {
    method,
    headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
    signal: AbortSignal.any([AbortSignal.timeout(40_000), ...(signal ? [signal] : [])]),
  });
  if (answer.ok) return answer.json();
  const problem = await answer.json().catch(() => ({}));
  const wait = Number(answer.headers.get("retry-after") ?? 0);
  throw Object.assign(new Refused(answer.status, problem), { wait });
}

// Repeat a request that may be repeated (renew, finish, release, a look by token) until it is
// answered, refused for good, or `deadline` has passed.
async function ask(method, path, body, deadline) {
  for (let tries = 0; ; tries += 1) {
    let wait = 0;
    try {
      return await send(method, path, body);
    } catch (error) {
      if (error instanceof Refused && error.status < 500 && ![408, 429].includes(error.status)) throw error;
      wait = error.wait ?? 0;
    }
    wait = 1000 * wait + Math.random() * Math.min(5000, 100 * 2 ** tries);
    if (now() + wait / 1000 > deadline) throw new Error(`no answer to ${method} ${path} in time`);
    await pause(wait);
  }
}

// -- Leases ----------------------------------------------------------------------------------------

// A lease counts from the moment the request was sent, and is trusted for nine tenths of its time.
function trustedUntil(sent) { return sent + 0.9 * leaseFor; }

// The claim carries its own token: when its answer is lost, the token finds what it had leased.
async function claim(limit) {
  const token = randomUUID();
  const sent = now();
  const asked = {
    worker, token, limit, queues: [queue], tasks: Object.keys(handlers), lease_for_s: leaseFor, wait_s: 20,
  };
  try {
    const { leases } = await send("POST", "/v1/leases", asked, claiming.signal);
    return { leases, deadline: trustedUntil(sent) };
  } catch (error) {
    if (error instanceof Refused) {
      if (error.isFinal) throw error;
      await pause(1000 * (error.wait || 1));
      return { leases: [], deadline: 0 };
    }
  }
  const path = `/v1/leases/${token}?worker=${encodeURIComponent(worker)}`;
  const { leases } = await ask("GET", path, undefined, trustedUntil(sent)).catch(rethrowFinal);
  return { leases: leases ?? [], deadline: trustedUntil(sent) };
}

function rethrowFinal(error) {
  if (error instanceof Refused && error.isFinal) throw error;
  return {};
}

// One request renews everything that is held. What it does not confirm is stopped.
async function renew() {
  const mine = [...held].filter(([, lease]) => !lease.ended);
  if (!mine.length) return;
  const sent = now();
  const leases = mine.map(([run, { token }]) => ({ run, token }));
  const earliest = Math.min(...mine.map(([, { deadline }]) => deadline));
  const answer = await ask("POST", "/v1/leases/renew", { leases, lease_for_s: leaseFor }, earliest)
    .catch(rethrowFinal);
  for (const { run, cancel } of answer.renewed ?? []) {
    const lease = held.get(run);
    if (lease) lease.deadline = trustedUntil(sent);
    if (lease && cancel) lease.controller.abort("cancelled");
  }
  for (const run of answer.lost ?? []) held.get(run)?.controller.abort("lost");
  for (const [, lease] of mine) if (now() > lease.deadline) lease.controller.abort("lost");
}

// Returns leases that nothing was done with, at no cost to their runs.
async function release(leases, deadline) {
  if (!leases.length) return;
  const body = { leases: leases.map(({ run, token }) => ({ run, token })) };
  await ask("POST", "/v1/leases/release", body, deadline).catch(rethrowFinal);
}

async function keepLeases() {
  while (!closed.signal.aborted) {
    await Promise.race([pause((leaseFor * 1000) / 3), closing]);
    await renew();
  }
}

// Waits until the service has a cancellation for this worker; the renewal tells which run it is.
async function followCancellations() {
  const register = { worker, queues: [queue], tasks: Object.keys(handlers), concurrency: slots };
  let known = false;
  while (!closed.signal.aborted) {
    try {
      if (!known) ({ known } = await send("POST", "/v1/workers", register, closed.signal));
      const beat = { idle: held.size === 0, stopping, running: held.size };
      ({ known } = await send("POST", `/v1/workers/${worker}/heartbeat`, beat, closed.signal));
      const { called } = await send("GET", `/v1/workers/${worker}/cancellations?wait=10s`, undefined, closed.signal);
      if (called) await renew();
    } catch (error) {
      if (error instanceof Refused && error.isFinal) throw error;
      await Promise.race([pause(1000 * (error.wait || 1)), closing]);
    }
  }
}

// -- Attempts --------------------------------------------------------------------------------------

// Runs a handler until it ends or must stop. Returns what to report, or null for nothing.
async function execute(lease, controller) {
  const { args, kwargs } = lease.spec;
  const handler = handlers[`${lease.task}@${lease.version}`];
  const { signal } = controller;
  const aborted = new Promise((_, reject) => { signal.addEventListener("abort", () => reject(signal.reason)); });
  const timer = lease.timeout_ms && setTimeout(() => controller.abort("timeout"), lease.timeout_ms);
  try {
    const context = { signal, run: lease.run, attempt: lease.attempt };
    const result = await Promise.race([handler(args.length ? args[0] : kwargs, context), aborted]);
    return { result: result ?? null };
  } catch (error) {
    if (!signal.aborted) return { error: described(error) };
    if (signal.reason === "cancelled") return { cancelled: true };
    if (signal.reason === "released") return { released: true };
    if (signal.reason !== "timeout") return null;
    return { error: { kind: "timeout", type: "TimedOut", message: `It took longer than ${lease.timeout_ms} ms.` } };
  } finally {
    clearTimeout(timer);
  }
}

// The service refuses an error type over 300 characters and a message over 16,000.
function described(error) {
  const type = String(error?.name || "Error").slice(0, 300);
  return { type, message: String(error?.message ?? error).slice(0, 4000) };
}

async function attempt(lease, deadline) {
  const controller = new AbortController();
  const mine = { token: lease.token, deadline, controller, ended: false };
  held.set(lease.run, mine);
  try {
    const end = await execute(lease, controller);
    if (end) await finish(lease, mine, end);
    else console.log(`${lease.run} lost`);
  } catch (error) {
    if (error instanceof Refused && error.isFinal) throw error;
    console.log(`${lease.run} not reported: ${error.message}`);
  } finally {
    mine.ended = true;
    held.delete(lease.run);
  }
}

// The lease is renewed until the finish is answered. A value the service refuses (too large, not
// acceptable) is reported as a failure: another attempt would return it again.
async function finish(lease, mine, end) {
  const proof = { run: lease.run, token: lease.token };
  const report = (body) => ask("POST", "/v1/leases/finish", { ...proof, ...body }, mine.deadline);
  const answer = await report(end).catch((error) => {
    if (!(error instanceof Refused) || ![413, 422].includes(error.status)) throw error;
    return report({ error: { kind: "bad_result", type: "ResultRefused", message: error.message, fatal: true } });
  });
  for (const { run, accepted_as: how } of answer.accepted) console.log(`${run} ${how}`);
  for (const run of answer.lost) console.log(`${run} lost`);
}

// -- The worker ------------------------------------------------------------------------------------

const claiming = new AbortController(); // Ends a claim that waits.
const closed = new AbortController(); // Ends what goes on beside the claims.
const closing = new Promise((resolve) => { closed.signal.addEventListener("abort", resolve); });

process.on("SIGTERM", () => {
  if (stopping) releaseAll();
  stopping = true;
  claiming.abort();
  stopped();
});

function releaseAll() {
  for (const { controller } of held.values()) controller.abort("released");
}

async function work() {
  const running = new Set();
  while (!stopping) {
    if (running.size >= slots) {
      await Promise.race([...running, stop, failed]);
      continue;
    }
    const { leases, deadline } = await Promise.race([claim(slots - running.size), failed]);
    if (stopping) await release(leases, deadline);
    else for (const lease of leases) {
      const done = attempt(lease, deadline).catch(fail).finally(() => running.delete(done));
      running.add(done);
    }
  }
  const timer = setTimeout(releaseAll, grace * 1000);
  await Promise.race([Promise.all(running), failed]);
  clearTimeout(timer);
}

let fail = () => {};
const failed = new Promise((_, reject) => { fail = reject; });
failed.catch(() => {});

// A refused token cannot be repaired from here: nothing can be reported any more, so stop working.
// The leases run out, and other workers get the runs at no cost to their attempts.
let code = 0;
try {
  const beside = [keepLeases(), followCancellations()].map((each) => each.catch(fail));
  await work();
  closed.abort();
  await Promise.all(beside);
  await send("DELETE", `/v1/workers/${worker}`).catch(() => {});
} catch (error) {
  console.error(String(error.message));
  for (const { controller } of held.values()) controller.abort("lost");
  code = 1;
}
process.exit(code);
