import { setImmediate as turn } from "node:timers/promises";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { type PageAsset, pageEnd, pageStart } from "../../../lib/http/page-html.js";
import { staticLimits } from "./attempt-detail.js";
import type { RunFolder } from "./run-folder.js";
import type { AttemptDetail, AttemptRow, StaticPage, StaticRun } from "./view-model.js";
import { viewPage } from "./view-page.js";

const gzipped = promisify(gzip);

/** Details are compressed together up to this many characters; the browser unpacks a whole block to show one attempt. */
const BLOCK_CHARS = 256 * 1024;

/** After so many attempts, what else there is to do gets a turn, such as ctrl-C. */
const ATTEMPTS_A_TURN = 64;

export interface StaticPageOptions {
  asset: PageAsset;
  /** Details that would make the page longer are left out. */
  maxDetailBytes: number;
  signal: AbortSignal;
}

export interface StaticPageReport {
  attempts: number;
  /** Attempts whose details were left out. */
  leftOut: number;
}

/** Writes the page piece by piece, so that at most one block of details is in memory. */
export async function writeStaticPage(
  folders: readonly RunFolder[],
  write: (piece: string) => Promise<void>,
  { asset, maxDetailBytes, signal }: StaticPageOptions,
): Promise<StaticPageReport> {
  await write(pageStart(asset, { ...viewPage, connects: false }));
  const blocks = new DetailBlocks(write, maxDetailBytes);
  const runs: StaticRun[] = [];
  for (const folder of folders) {
    await folder.index.refresh();
    runs.push(await staticRun(folder, { blocks, signal }));
  }
  await blocks.flush();
  await write(pageBlock(0, await packed({ runs } satisfies StaticPage)));
  await write(pageEnd(asset));
  return {
    attempts: runs.reduce((sum, { rows }) => sum + rows.length, 0),
    leftOut: runs.reduce((sum, run) => sum + run.blocks.filter((block) => block === -1).length, 0),
  };
}

async function staticRun(
  folder: RunFolder,
  { blocks, signal }: { blocks: DetailBlocks; signal: AbortSignal },
): Promise<StaticRun> {
  const rows = folder.index.rows();
  const blockOf = rows.map(() => -1);
  const placeOf = rows.map(() => 0);
  for (const [count, at] of mostInteresting(rows).entries()) {
    if (count % ATTEMPTS_A_TURN === 0) await turn();
    signal.throwIfAborted();
    if (blocks.isFull) break;
    const detail = folder.detail(at, staticLimits);
    const added = detail === null ? null : await blocks.add(detail);
    if (added === null) continue;
    blockOf[at] = added.block;
    placeOf[at] = added.place;
  }
  const { unreadableLines } = folder.index;
  return { header: folder.header(), rows, unreadableLines, blocks: blockOf, places: placeOf };
}

/** Attempts that did not get the full reward come first, since these are looked at if there is no room for all. */
function mostInteresting(rows: readonly AttemptRow[]): number[] {
  const places = rows.map((_, at) => at);
  const isFailed = (at: number) => rows[at]?.cause !== null;
  return [...places.filter(isFailed), ...places.filter((at) => !isFailed(at))];
}

/** Fills blocks until they are as long together as allowed. Block 0 is written last, and is none of these. */
class DetailBlocks {
  readonly #write: (piece: string) => Promise<void>;
  readonly #maxBytes: number;
  #details: string[] = [];
  #chars = 0;
  #writtenBytes = 0;
  #number = 1;

  constructor(write: (piece: string) => Promise<void>, maxBytes: number) {
    this.#write = write;
    this.#maxBytes = maxBytes;
  }

  get isFull(): boolean {
    return this.#writtenBytes >= this.#maxBytes;
  }

  /** Null if there is no room any more. */
  async add(detail: AttemptDetail): Promise<{ block: number; place: number } | null> {
    if (this.#chars >= BLOCK_CHARS) await this.flush();
    if (this.isFull) return null;
    const json = JSON.stringify(detail);
    this.#details.push(json);
    this.#chars += json.length;
    return { block: this.#number, place: this.#details.length - 1 };
  }

  async flush(): Promise<void> {
    if (this.#details.length === 0) return;
    const base64 = (await gzipped(`[${this.#details.join(",")}]`)).toString("base64");
    await this.#write(pageBlock(this.#number, base64));
    this.#writtenBytes += base64.length;
    this.#number++;
    this.#details = [];
    this.#chars = 0;
  }
}

async function packed(value: unknown): Promise<string> {
  return (await gzipped(JSON.stringify(value))).toString("base64");
}

/** The data of a block are gzip in base64, so no text of theirs can be read as HTML. */
function pageBlock(number: number, base64: string): string {
  return `<script type="application/octet-stream" id="block-${number}">${base64}</script>\n`;
}
