import type { Conversation, PreparedSession } from "../../../agent/index.js";
import type { CliContext } from "../../../command/index.js";
import { neutralise, neutraliseLine } from "../../../lib/terminal/terminal.js";
import { explainGate } from "../../../tools/index.js";
import { readVersion } from "../../../version.js";
import { usageText } from "../../display/usage-text.js";
import { toolCatalogue } from "../../setup/tool-catalogue.js";
import { gateLayers } from "../../setup/tool-settings.js";
import type { Block } from "./block.js";

export function headingBlock({ setting, options }: PreparedSession): Block {
  return {
    kind: "heading",
    lines: [
      `brig ${readVersion()}`,
      neutraliseLine(`${options.model.model} · ${setting.sandboxMode} · ${setting.cwd}`),
      "/help lists the commands and keys",
    ],
  };
}

/** The parts of the line below the draft, the most important first. */
export function footerParts(conversation: Conversation, { options }: PreparedSession): string[] {
  const { setting } = conversation;
  return [
    ...(setting.network.kind === "none" ? [] : [`network ${networkWord(setting.network)}`]),
    setting.sandboxMode,
    neutraliseLine(options.model.model),
    ...contextLeft(conversation),
  ];
}

/** How much of the model's context window is left; empty if its size is unknown. */
export function contextLeft({ room: { usedTokens, windowTokens } }: Conversation): string[] {
  if (windowTokens === null) return [];
  const share = Math.max(0, 1 - usedTokens / windowTokens);
  return [`${Math.round(share * 100)} % context left`];
}

export function closingText(conversation: Conversation, { options }: PreparedSession): string {
  const { sessionFile, threadId } = conversation;
  const trouble = options.session?.trouble ?? null;
  return [
    ...[usageText(conversation).join(" · ")].filter((line) => line !== ""),
    ...(trouble === null ? [] : [`brig: ${neutralise(trouble)}`]),
    ...(sessionFile === null ? [] : [`to continue: brig resume ${threadId}`]),
  ]
    .map((line) => `${line}\n`)
    .join("");
}

export function toolRows(setup: PreparedSession, context: CliContext): (readonly [string, string])[] {
  const layers = gateLayers(setup, { model: setup.options.model.model, context });
  return toolCatalogue()
    .getToolNames()
    .map((name) => {
      const { isOn, why } = explainGate(name, layers);
      return [name, neutraliseLine(`${isOn ? "on " : "off"}  ${why}`)] as const;
    });
}

function networkWord(network: PreparedSession["setting"]["network"]): string {
  return network.kind === "allowlist" && network.learns === true ? "learn" : network.kind;
}
