import type { Config, ModelChoice, OtherModels } from "../../agent/index.js";
import { configuredModels, profileOf, REASONING_EFFORTS } from "../../agent/index.js";
import { suggest } from "../../lib/suggest.js";
import { neutraliseLine } from "../../lib/terminal/terminal.js";
import { chooserOf, type ListEntry } from "./chooser.js";
import { chooseFrom } from "./question.js";
import { notice, warning } from "./screen/block.js";
import type { SessionSwitch } from "./session-switch.js";
import type { SlashCall, SlashParts } from "./slash-call.js";

const USAGE = `/model, or /model NAME [${REASONING_EFFORTS.join("|")}]`;
const DEFAULT_EFFORT = "default";

/** `/model`: goes on with another model or effort, chosen in lists or named. */
export async function modelCommand(call: SlashCall, parts: SlashParts): Promise<void> {
  const { sessions, show, setup } = parts;
  const { otherModels } = setup;
  if (sessions === null || otherModels === null)
    return show(
      warning("this session plays a script, which has no other model", "start brig without --script"),
    );
  const choice =
    call.argument === ""
      ? await chosenFromLists(otherModels, call, parts)
      : await named(otherModels, call, parts);
  if (choice === null) return;
  await change(sessions, choice, parts);
}

async function change(sessions: SessionSwitch, choice: ModelChoice, { show }: SlashParts): Promise<void> {
  const { model: before } = sessions.conversation;
  const isSame =
    before.model === choice.model &&
    before.reasoningEffort === choice.reasoningEffort &&
    (choice.provider ?? before.provider) === before.provider;
  const effort =
    choice.reasoningEffort === undefined ? "" : ` with reasoning effort ${choice.reasoningEffort}`;
  const name = neutraliseLine(`${choice.model}${effort}`);
  if (isSame) return show(notice(`the model is already ${name}`));
  await sessions.takeModel(choice);
  show(notice(`${name} from now on`));
}

/** The choice that the words name; null if there is no such model, which is shown. */
async function named(
  models: OtherModels,
  { argument, signal }: SlashCall,
  { conversation: { model: present }, show }: SlashParts,
): Promise<ModelChoice | null> {
  const [model = "", effort, ...more] = argument.split(/\s+/);
  const isEffort = effort === undefined || effort === DEFAULT_EFFORT || isKnownEffort(effort);
  if (!isEffort || more.length > 0) {
    show(warning(`/model ${neutraliseLine(argument)} cannot be understood`, USAGE));
    return null;
  }
  const { provider } = present;
  const known = await models.list({ provider }, signal);
  const isUnknown = known !== null && !known.includes(model) && model !== present.model;
  if (isUnknown) {
    const meant = suggest(model, known);
    show(
      warning(
        `the endpoint of ${neutraliseLine(provider)} has no model ${neutraliseLine(model)}, so nothing has changed`,
        meant === null ? "list its models with: /model" : `did you mean ${neutraliseLine(meant)}?`,
      ),
    );
    return null;
  }
  if (known === null && model !== present.model)
    show(
      warning(
        `the endpoint of ${neutraliseLine(provider)} lists no models: whether it has this one will show`,
      ),
    );
  const kept = profileOf(model).reasons ? present.reasoningEffort : undefined;
  return { model, provider, reasoningEffort: effort === undefined ? kept : wantedEffort(effort) };
}

interface Offered {
  model: string;
  provider: string;
  effort: string | undefined;
  about: string;
}

async function chosenFromLists(
  models: OtherModels,
  { signal }: SlashCall,
  { conversation: { model: present }, questions, setup }: SlashParts,
): Promise<ModelChoice | null> {
  const listed = (await models.list({ provider: present.provider }, signal)) ?? [];
  const offered = offeredModels(present, { config: setup.config, listed });
  const isPresent = ({ model, provider }: Offered) =>
    model === present.model && provider === present.provider;
  const key = await chooseFrom(
    questions,
    {
      title: "Which model?",
      list: chooserOf(
        offered.map((one, index) => modelEntry(one, `${index}`, isPresent(one))),
        { at: offered.findIndex(isPresent) },
      ),
      dismissal: "stay with the present one",
    },
    { signal },
  );
  const chosen = key === null ? undefined : offered[Number(key)];
  if (chosen === undefined) return null;
  const { model, provider, effort } = chosen;
  if (!profileOf(model).reasons) return { model, provider, reasoningEffort: effort };
  const usual = isPresent(chosen) ? present.reasoningEffort : effort;
  const efforts = [DEFAULT_EFFORT, ...REASONING_EFFORTS];
  const wanted = await chooseFrom(
    questions,
    {
      title: `How much should ${neutraliseLine(model)} reason?`,
      list: chooserOf(
        efforts.map((name) => ({ key: name, label: name, about: aboutEffort(name, usual) })),
        { at: efforts.indexOf(usual ?? DEFAULT_EFFORT) },
      ),
      dismissal: "stay with the present model",
    },
    { signal },
  );
  return wanted === null ? null : { model, provider, reasoningEffort: wantedEffort(wanted) };
}

/** The present model, those that the configuration names, and those of the endpoint. */
function offeredModels(
  present: SlashParts["conversation"]["model"],
  { config, listed }: { config: Config; listed: readonly string[] },
): Offered[] {
  const { provider } = present;
  const all: Offered[] = [
    { model: present.model, provider, effort: present.reasoningEffort, about: "" },
    ...configuredModels(config).map(({ source, ...one }) => ({ ...one, about: source })),
    ...listed.map((model) => ({ model, provider, effort: undefined, about: "" })),
  ];
  const known = new Map<string, Offered>();
  for (const one of all) {
    const key = `${one.provider} ${one.model}`;
    if (!known.has(key)) known.set(key, one);
  }
  return [...known.values()];
}

function modelEntry({ model, provider, about }: Offered, key: string, isPresent: boolean): ListEntry {
  const more = [isPresent ? "present" : "", about, provider].filter((text) => text !== "");
  return { key, label: neutraliseLine(model), about: neutraliseLine(more.join(" · ")) };
}

function aboutEffort(name: string, usual: string | undefined): string | undefined {
  if (name === (usual ?? DEFAULT_EFFORT)) return "present";
  return name === DEFAULT_EFFORT ? "as the endpoint does it" : undefined;
}

function isKnownEffort(effort: string): boolean {
  return (REASONING_EFFORTS as readonly string[]).includes(effort);
}

function wantedEffort(effort: string): string | undefined {
  return effort === DEFAULT_EFFORT ? undefined : effort;
}
