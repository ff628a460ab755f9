// A discipline's latest run: its worker, and its results so far.

class Run {
  constructor(side, changed) {
    Object.assign(this, { side, changed, id: 0, head: null, frames: [], samples: [], report: null, error: null });
    const source = document.getElementById('worker').textContent;
    this.worker = new Worker(URL.createObjectURL(new Blob([source], { type: 'text/javascript' })));
    this.worker.onmessage = ({ data }) => this.take(data);
    this.worker.onerror = (event) => { this.error = event.message || 'the worker failed'; changed(this, {}); };
  }

  // Passes the module to the worker; returns the catalog.
  load(module) {
    return new Promise((ready) => {
      this.ready = ready;
      this.worker.postMessage({ module });
    });
  }

  start(words) {
    Object.assign(this, { id: this.id + 1, error: null, words });
    this.worker.postMessage({ id: this.id, words });
  }

  take(data) {
    if (data.catalog) return this.ready(data.catalog);
    if (data.id !== this.id) return;
    if (data.error) Object.assign(this, { error: data.error });
    // The previous run's results stay visible until this point.
    if (data.head) Object.assign(this, { head: data.head, frames: [], samples: [], report: null, most: [1, 1], longest: 0 });
    if (data.frames) this.add(data);
    if (data.report) Object.assign(this, { report: data.report, result: JSON.parse(data.report).mean, busy: data.busy, took: data.took });
    this.changed(this, data);
  }

  // Records the start of each frame, and the maximum number of packets in each queue.
  add({ frames, samples }) {
    let at = 0;
    while (at < frames.length) {
      this.frames.push({ numbers: frames, at });
      for (const direction of [0, 1]) {
        this.most[direction] = Math.max(this.most[direction], frames[at]);
        at += 3 + frames[at + 1];
      }
    }
    for (let index = 0; index < samples.length; index += 8) {
      const sample = samples.subarray(index, index + 8);
      this.samples.push(sample);
      this.longest = Math.max(this.longest, sample[4], sample[6]);
    }
  }

  // Returns the queued packets at a time: { total, sent, packets }.
  queue(seconds, direction) {
    const frame = this.frames[Math.min(this.frames.length, Math.round(seconds / (this.head?.frame ?? 1))) - 1];
    if (!frame) return { total: 0, sent: 0, packets: new Uint16Array() };
    const { numbers } = frame;
    const at = frame.at + (direction ? 3 + numbers[frame.at + 1] : 0);
    return { total: numbers[at], sent: numbers[at + 2], packets: numbers.subarray(at + 3, at + 3 + numbers[at + 1]) };
  }
}
