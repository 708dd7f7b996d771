// SPDX-License-Identifier: MIT
// A worker in JavaScript, without any SDK: it claims, renews and finishes over plain HTTP.
//   BYROTE_SERVICE_URL=http://127.0.0.1:8000 BYROTE_SERVICE_TOKEN=byr_… node worker.mjs
// SIGTERM stops it: it claims no more, and what is under way is finished first.

const url = process.env.BYROTE_SERVICE_URL;
const token = process.env.BYROTE_SERVICE_TOKEN;
const queue = process.env.QUEUE ?? "default";
const worker = `node-${process.pid}`;
const leaseFor = Number(process.env.LEASE_S ?? 30);
let stopping = false;
process.on("SIGTERM", () => { stopping = true; });

// Handlers by task. They may run more than once for a run: make them idempotent.
const handlers = {
  "shout@1": async (payload) => String(payload).toUpperCase(),
  "slow@1": async (payload) => {
    await pause(payload.ms);
    return payload.ms;
  },
  "broken@1": async () => { throw new TypeError("this never works"); },
};

function pause(ms) {
  return new Promise((done) => setTimeout(done, ms));
}

// Every request may be repeated: a finish is proved by its token, and so is a claim.
async function ask(path, body) {
  for (let tries = 0; ; tries += 1) {
    try {
      const answer = await fetch(url + path, {
        method: "POST",
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(40_000),
      });
      if (answer.ok) return await answer.json();
      const problem = await answer.json().catch(() => ({}));
      if (answer.status < 500 && answer.status !== 429 && answer.status !== 408) {
        throw Object.assign(new Error(`${answer.status} ${problem.detail}`), { fatal: true });
      }
      await pause(1000 * Number(answer.headers.get("retry-after") ?? 0));
    } catch (error) {
      if (error.fatal) throw error;
    }
    await pause(Math.random() * Math.min(5000, 100 * 2 ** tries));
  }
}

// While a run is worked on its lease is renewed, at a third of its length.
// A run that is not renewed is lost: whatever we say of it would not be heard.
async function attempt(lease) {
  const held = { run: lease.run, token: lease.token };
  let lost = false;
  const keeper = setInterval(async () => {
    const answer = await ask("/v1/leases/renew", { leases: [held], lease_for_s: leaseFor });
    lost = answer.lost.includes(lease.run);
  }, (leaseFor * 1000) / 3);
  let end;
  try {
    const { args, kwargs } = lease.spec;
    const handler = handlers[`${lease.task}@${lease.version}`];
    end = { result: (await handler(args.length ? args[0] : kwargs)) ?? null };
  } catch (error) {
    end = { error: { type: error.name, message: String(error.message) } };
  } finally {
    clearInterval(keeper);
  }
  if (lost) return;
  const answer = await ask("/v1/leases/finish", { ...held, ...end });
  for (const { run, heard } of answer.accepted) console.log(`${run} ${heard}`);
  for (const run of answer.lost) console.log(`${run} lost`);
}

while (!stopping) {
  const { leases } = await ask("/v1/leases", {
    worker, queues: [queue], tasks: Object.keys(handlers), limit: 4, lease_for_s: leaseFor, wait_s: 1,
  });
  await Promise.all(leases.map(attempt));
}
