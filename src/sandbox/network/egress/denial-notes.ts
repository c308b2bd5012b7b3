import type { EgressAttempt } from "../../egress/attempt.js";
import { describeDenial } from "../../egress/rules/denial.js";
import type { CallCause } from "../../output/call-cause.js";

interface Denied {
  /** Null for a name that was looked up: datagrams do not say whose they are. */
  channel: number | null;
  /** The host and port that were asked for. */
  target: string;
  sentence: string;
  cause: CallCause & { kind: "network-rule" };
  /** The time of the last refusal. */
  atMs: number;
  /** The number of refusals. */
  count: number;
}

/** The most refusals that are kept for one sandbox. Older ones are forgotten, since their commands have most likely ended. */
const MAX_KEPT = 500;
/** The most different refusals that are shown for one command. */
const MAX_SHOWN = 10;
/** The most refusals that are named in one line. */
const MAX_IN_LINE = 5;

interface RanCommand {
  channel: number;
  startedAtMs: number;
  /** A person sees its output; the program may have run for hours. */
  isOnTerminal: boolean;
}

/** Refusals of the allow-list, for the output of the commands that caused them. */
export class DenialNotes {
  #denied: Denied[] = [];

  add({ outcome, owner, host, port, startedAtMs }: EgressAttempt): void {
    if (outcome.kind !== "denied") return;
    const target = port === null ? host : `${host}:${port}`;
    const sentence = describeDenial(outcome.denial, target);
    const channel = owner?.channel ?? null;
    const known = this.#denied.find((one) => one.channel === channel && one.sentence === sentence);
    // Names that were looked up are not added up, since each may be another command's.
    if (known !== undefined && channel !== null) {
      known.count += 1;
      known.atMs = startedAtMs;
      return;
    }
    const cause = { kind: "network-rule", host, port, denial: outcome.denial.kind } as const;
    this.#denied.push({ channel, target, sentence, cause, atMs: startedAtMs, count: 1 });
    if (this.#denied.length > MAX_KEPT) this.#denied = this.#denied.slice(-MAX_KEPT / 2);
  }

  /** Refusals for the channel, each once. Looked-up names are left out, since it is not known which command asked for them. */
  causesFor(channel: number): CallCause[] {
    const own = this.#denied.filter((one) => one.channel === channel);
    return own.map(({ cause }) => cause).slice(0, MAX_SHOWN);
  }

  /** The text for the end of a command's output; empty if nothing was refused. */
  textFor(command: RanCommand): string {
    const denied = this.#deniedTo(command);
    if (denied.length === 0) return "";
    return command.isOnTerminal ? `\n[${inOneLine(denied)}]\n` : `\n[${inLines(denied)}]\n`;
  }

  #deniedTo({ channel, startedAtMs }: RanCommand): Denied[] {
    const own = this.#denied.filter(
      (one) => one.channel === channel || (one.channel === null && one.atMs >= startedAtMs),
    );
    const bySentence = new Map<string, Denied>();
    for (const one of own) {
      const count = one.count + (bySentence.get(one.sentence)?.count ?? 0);
      bySentence.set(one.sentence, { ...one, count });
    }
    return [...bySentence.values()];
  }
}

function inLines(denied: readonly Denied[]): string {
  const left = denied.length - MAX_SHOWN;
  const more = left > 0 ? [`and ${left} more`] : [];
  const lines = [...denied.slice(0, MAX_SHOWN).map(({ sentence }) => sentence), ...more];
  return `brig refused connections. Only the user can allow them, with --network:\n${lines.map((one) => `  ${one}`).join("\n")}`;
}

function inOneLine(denied: readonly Denied[]): string {
  const total = denied.reduce((sum, { count }) => sum + count, 0);
  const mostFirst = denied.toSorted((a, b) => b.count - a.count);
  const left = denied.length - MAX_IN_LINE;
  const parts = [
    ...mostFirst.slice(0, MAX_IN_LINE).map((one) => `${one.count} × ${briefly(one)}`),
    ...(left > 0 ? [`and ${left} more`] : []),
  ];
  const connections = total === 1 ? "1 connection" : `${total} connections`;
  return `brig refused ${connections}: ${parts.join(", ")}; only the user can allow them, with --network`;
}

/** For a host that no rule allows, the target alone says enough. */
function briefly({ cause, target, sentence }: Denied): string {
  return cause.denial === "no-rule" ? target : sentence;
}
