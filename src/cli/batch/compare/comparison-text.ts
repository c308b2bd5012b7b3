import type {
  Change,
  RunComparison,
  SettingDifference,
  TaskComparison,
  TaskScore,
} from "../../../batch/index.js";
import { estimateText } from "../../../batch/index.js";

const SHOWN_SETTINGS = 40;
/** A difference is usually called significant if its p-value is below this level. */
const USUAL_LEVEL = 0.05;

const changes: Record<Change, string> = {
  lost: "lost",
  gained: "gained",
  worse: "lower",
  better: "higher",
  same: "same",
  incomparable: "no score in one",
};

export function settingRows(differences: readonly SettingDifference[]): string[][] {
  const shown = differences.slice(0, SHOWN_SETTINGS);
  const left = differences.length - shown.length;
  return [
    ["SETTING", "BEFORE", "AFTER"],
    ...shown.map(({ field, before, after }) => [field, before ?? "-", after ?? "-"]),
    ...(left === 0 ? [] : [[`and ${left} more`, "", ""]]),
  ];
}

export function taskRows(tasks: readonly TaskComparison[]): string[][] {
  return [
    ["TASK", "CHANGE", "BEFORE", "AFTER"],
    ...tasks.map(({ task, change, a, b }) => [task, changes[change], scoreText(a), scoreText(b)]),
  ];
}

/** The sentences below the tables. */
export function comparisonText({ counts, difference, chance }: RunComparison): string {
  const { lost, gained, worse, better, same, incomparable } = counts;
  const compared = lost + gained + worse + better + same;
  const lines = [
    `${gained} gained, ${lost} lost of ${compared} ${compared === 1 ? "task" : "tasks"} with a score in both runs`,
    ...(incomparable === 0 ? [] : [`${incomparable} without a score in one of them`]),
    ...(difference === null ? [] : [`the mean reward differs by ${estimateText(difference, compared)}`]),
    ...(gained + lost === 0 ? [] : [chanceText(chance)]),
  ];
  return lines.map((line) => `${line}\n`).join("");
}

function scoreText({ reward, full, scored }: TaskScore): string {
  return reward === null ? "-" : `${reward.toFixed(3)} ${full}/${scored}`;
}

function chanceText(chance: number): string {
  const said = chance < USUAL_LEVEL ? "chance alone rarely does this" : "this may well be chance";
  return `McNemar's test: p ${chance < 0.0001 ? "< 0.0001" : `= ${chance.toFixed(4)}`}, so ${said}`;
}
