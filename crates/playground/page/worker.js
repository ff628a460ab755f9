// A simulator in its own thread. Receives { module } once, and { id, words } for each run; only the latest run
// continues. Sends { catalog }, and for each run its head, parts and report, or an error.
'use strict';

const PART_MS = 24; // duration of the work between two messages
let module, exports, latest;

const text = () => new TextDecoder().decode(new Uint8Array(exports.memory.buffer, exports.asymq_text(), exports.asymq_text_len()));

function open(words) {
  const bytes = new TextEncoder().encode(words.join('\n'));
  new Uint8Array(exports.memory.buffer, exports.asymq_input(bytes.length), bytes.length).set(bytes);
  if (!exports.asymq_open()) throw new Error(text());
  return JSON.parse(text());
}

function part() {
  const numbers = (type, at, length) => new type(exports.memory.buffer.slice(at, at + length * type.BYTES_PER_ELEMENT));
  return {
    frames: numbers(Uint16Array, exports.asymq_frames(), exports.asymq_frames_len()),
    samples: numbers(Float32Array, exports.asymq_samples(), exports.asymq_samples_len()),
  };
}

// Lets the thread receive messages. A timer would wait for 4 ms each time.
const channel = new MessageChannel();
const pause = () => new Promise((go) => { channel.port1.onmessage = go; channel.port2.postMessage(0); });

async function run({ id, words }) {
  const began = performance.now();
  let busy = 0, step = 100, now = 0;
  postMessage({ id, head: open(words) });
  const end = JSON.parse(text()).duration * 1000;
  while (now < end) {
    const start = performance.now();
    now = exports.asymq_advance(Math.min(now + step, end));
    const took = performance.now() - start;
    busy += took;
    step = Math.max(20, Math.min(10000, step * Math.max(0.5, Math.min(2, PART_MS / Math.max(took, 0.1)))));
    const { frames, samples } = part();
    postMessage({ id, now: now / 1000, frames, samples }, [frames.buffer, samples.buffer]);
    await pause();
    if (latest !== id) return;
  }
  if (!exports.asymq_report()) throw new Error(text());
  postMessage({ id, report: text(), busy, took: performance.now() - began });
}

async function start() {
  exports = (await WebAssembly.instantiate(module, {})).exports;
}

onmessage = async ({ data }) => {
  if (data.module) {
    module = await WebAssembly.compile(data.module);
    await start();
    exports.asymq_catalog();
    return postMessage({ catalog: JSON.parse(text()) });
  }
  latest = data.id;
  try {
    await run(data);
  } catch (error) {
    const stopped = error instanceof WebAssembly.RuntimeError;
    if (stopped) await start(); // the module's memory may be half written
    postMessage({ id: data.id, error: stopped ? `the simulator stopped (${error.message}); please report this link` : error.message });
  }
};
