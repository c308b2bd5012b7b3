import { mapTexts } from "../lib/json/map-texts.js";
import type { OutputPart } from "../sandbox/index.js";
import type { Tool, ToolCallOptions, ToolOutput } from "./tool.js";
import type { ToolSandbox } from "./tool-sandbox.js";

type MaskText = NonNullable<ToolSandbox["maskSecrets"]>;

/**
 * Hides the secrets of a sandbox, which may still be starting, in what its tools return and report. Every call passes
 * here, whether a model, a program or another tool makes it.
 */
export class MaskedTools {
  readonly #masked = new WeakMap<Tool, Tool>();
  /** Undefined while the sandbox is starting. */
  #mask: MaskText | null | undefined;
  readonly #ready: Promise<void>;
  readonly #waits: boolean;

  /** `waits`: whether tools may return something that is not from the sandbox before it has started. */
  constructor(sandbox: ToolSandbox | Promise<ToolSandbox>, { waits }: { waits: boolean }) {
    this.#waits = waits;
    if (!(sandbox instanceof Promise)) this.#mask = sandbox.maskSecrets ?? null;
    this.#ready = Promise.resolve(sandbox).then(
      ({ maskSecrets = null }) => {
        this.#mask = maskSecrets;
      },
      () => undefined,
    );
  }

  over(tool: Tool): Tool {
    const known = this.#masked.get(tool) ?? this.#over(tool);
    this.#masked.set(tool, known);
    return known;
  }

  #over(tool: Tool): Tool {
    const execute: Tool["execute"] = async (args, call) => {
      const output = await tool.execute(args, this.#watched(call));
      if (this.#waits && this.#mask === undefined) await this.#ready;
      return this.#mask ? maskedOutput(output, this.#mask) : output;
    };
    // A spread would make the tool's declaration, which is made on demand.
    const { execute: _, ...others } = Object.getOwnPropertyDescriptors(tool);
    return Object.defineProperties({ execute } as Tool, others);
  }

  #watched(call: ToolCallOptions | undefined): ToolCallOptions | undefined {
    const { onActivity } = call ?? {};
    if (onActivity === undefined || this.#mask === null) return call;
    return {
      ...call,
      onActivity: (activity) => onActivity(this.#mask ? mapTexts(activity, this.#mask) : activity),
    };
  }
}

function maskedOutput({ parts, ...output }: ToolOutput, mask: MaskText): ToolOutput {
  return {
    ...mapTexts(output, mask),
    ...(parts && { parts: parts.map((part) => maskedPart(part, mask)) }),
  };
}

/** An image with asterisks in it would be refused by the model's endpoint, with the whole request. */
function maskedPart(part: OutputPart, mask: MaskText): OutputPart {
  if (part.type !== "input_image") return mapTexts(part, mask);
  if (mask(part.image_url) === part.image_url) return part;
  return { type: "input_text", text: "[an image was left out, because a secret is in it]" };
}
