// Shows the progress of long steps: a line that changes on a terminal, plain lines elsewhere.
const heartbeatMs = 10_000;

export class Progress {
  #stream;
  #name;
  #step = null;

  /** `name` is the script's, at the begin of each line. */
  constructor(stream, name = "setup") {
    this.#stream = stream;
    this.#name = name;
  }

  /** Runs a step and shows its title. `run` gets a function to call with each line of the step's output. */
  async step(title, run) {
    this.#begin(title);
    try {
      const result = await run((line) => this.#show(line));
      const seconds = ((Date.now() - this.#step.startedAt) / 1000).toFixed(1);
      this.stop();
      this.#stream.write(`${this.#name}: ${title}: done in ${seconds} s\n`);
      return result;
    } finally {
      this.stop();
    }
  }

  stop() {
    if (this.#step === null) return;
    clearInterval(this.#step.timer);
    if (this.#stream.isTTY) this.#stream.write("\r\x1b[2K");
    this.#step = null;
  }

  #begin(title) {
    const timer = setInterval(() => this.#beat(), this.#stream.isTTY ? 1000 : heartbeatMs);
    this.#step = { title, startedAt: Date.now(), lastLine: "", timer };
    if (this.#stream.isTTY) this.#redraw();
    else this.#stream.write(`${this.#name}: ${title}\n`);
  }

  #show(line) {
    if (this.#step === null) return;
    this.#step.lastLine = line.replace(/[^\x20-\x7e\u00a0-\uffff]/g, " ").trim();
    if (this.#stream.isTTY) this.#redraw();
  }

  #beat() {
    if (this.#stream.isTTY) this.#redraw();
    else this.#stream.write(`${this.#name}:   ${this.#text()}\n`);
  }

  #redraw() {
    this.#stream.write(`\r\x1b[2K${this.#text().slice(0, (this.#stream.columns || 80) - 1)}`);
  }

  #text() {
    const { title, startedAt, lastLine } = this.#step;
    return `${title} (${Math.round((Date.now() - startedAt) / 1000)} s) ${lastLine}`;
  }
}
