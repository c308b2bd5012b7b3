import type { AttemptDetail, StaticPage } from "../../view/view-model.js";
import type { DetailAnswer, RunSource, SourceState } from "./run-source.js";

/** Reads the blocks that the page itself contains. */
export class StaticSource implements RunSource {
  #page: Promise<StaticPage> | undefined;

  static isIn(document: Document): boolean {
    return document.getElementById("block-0") !== null;
  }

  watch(onState: (state: SourceState) => void): () => void {
    let isWatched = true;
    const tell = (state: SourceState) => {
      if (isWatched) onState(state);
    };
    this.#read().then(
      ({ runs }) => tell({ kind: "ready", runs, isLive: false, isStale: false }),
      () => tell({ kind: "failed", reason: "The data in this page are damaged." }),
    );
    return () => {
      isWatched = false;
    };
  }

  async detail(run: number, at: number): Promise<DetailAnswer> {
    const { runs } = await this.#read();
    const block = runs[run]?.blocks[at] ?? -1;
    if (block === -1) return { kind: "left-out" };
    try {
      const details = (await unpackBlock(block)) as AttemptDetail[];
      const detail = details[runs[run]?.places[at] ?? -1];
      return detail === undefined ? { kind: "left-out" } : { kind: "detail", detail };
    } catch {
      return { kind: "failed", reason: "The data in this page are damaged." };
    }
  }

  #read(): Promise<StaticPage> {
    this.#page ??= unpackBlock(0) as Promise<StaticPage>;
    return this.#page;
  }
}

async function unpackBlock(number: number): Promise<unknown> {
  const base64 = document.getElementById(`block-${number}`)?.textContent ?? "";
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return await new Response(unpacked).json();
}
