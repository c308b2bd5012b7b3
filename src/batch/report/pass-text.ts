import { type PassKind, passKinds } from "../runs/results/attempt-outcome.js";

/** Texts as in "2 shared, resting on changes outside of the work". */
const kindTexts: Readonly<Record<PassKind, string>> = {
  separate: "separate",
  shared: "shared and clean",
  "shared-outside": "shared, resting on changes outside of the work",
  "shared-unconfirmed": "shared, not confirmed",
};

/** Texts for a table. */
const shortTexts: Readonly<Record<PassKind, string>> = {
  separate: "separate",
  shared: "shared",
  "shared-outside": "outside",
  "shared-unconfirmed": "unconfirmed",
};

export function passKindText(kind: PassKind): string {
  return kindTexts[kind];
}

/** "2 separate, 1 shared and clean"; empty without a pass. */
export function passKindsText(
  counts: Readonly<Record<PassKind, number>>,
  { isShort = false }: { isShort?: boolean } = {},
): string {
  const texts = isShort ? shortTexts : kindTexts;
  return passKinds
    .filter((kind) => counts[kind] > 0)
    .map((kind) => `${counts[kind]} ${texts[kind]}`)
    .join(", ");
}
