import type { Conversation, PreparedSession } from "../../../agent/index.js";
import type { CliContext } from "../../../command/index.js";
import { neutralise, neutraliseLine } from "../../../lib/terminal/terminal.js";
import { explainGate } from "../../../tools/index.js";
import { readVersion } from "../../../version.js";
import { usageText } from "../../display/usage-text.js";
import { toolCatalogue } from "../../setup/tool-catalogue.js";
import { gateLayers } from "../../setup/tool-settings.js";
import type { Block } from "./block.js";

export function headingBlock({ setting, model }: Conversation): Block {
  return {
    kind: "heading",
    lines: [
      `brig ${readVersion()}`,
      neutraliseLine(`${model.model} · ${setting.sandboxMode} · ${setting.cwd}`),
      "/help lists the commands and keys",
    ],
  };
}

/** The parts of the line below the draft, the most important first. */
export function footerParts(conversation: Conversation): string[] {
  const { setting, model } = conversation;
  return [
    ...(setting.network.kind === "none" ? [] : [`network ${networkWord(setting.network)}`]),
    setting.sandboxMode,
    neutraliseLine([model.model, ...(model.reasoningEffort ? [model.reasoningEffort] : [])].join(" ")),
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
    ...usageLines(conversation),
    ...(trouble === null ? [] : [`brig: ${neutralise(trouble)}`]),
    ...(sessionFile === null ? [] : [`to continue: brig resume ${threadId}`]),
  ]
    .map((line) => `${line}\n`)
    .join("");
}

/** The tokens that were used; no line for none. */
export function usageLines(conversation: Conversation): string[] {
  return [usageText(conversation).join(" · ")].filter((line) => line !== "");
}

export function toolRows(
  { setup, conversation }: { setup: PreparedSession; conversation: Conversation },
  context: CliContext,
): (readonly [string, string])[] {
  const { model, provider } = conversation.model;
  const isOther = provider !== setup.options.model.provider;
  const config = isOther ? { ...setup.config, model_provider: provider } : setup.config;
  const layers = gateLayers({ ...setup, config }, { model, context });
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
