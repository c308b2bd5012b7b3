import type { EgressAttempt } from "../../egress/attempt.js";
import { describeDenial } from "../../egress/rules/denial.js";
import type { CallCause } from "../../output/call-cause.js";

interface Denied {
  /** Null for a name that was looked up: datagrams do not say whose they are. */
  channel: number | null;
  sentence: string;
  cause: CallCause;
  atMs: number;
}

/** Of one sandbox. Older ones are forgotten, since their commands have most likely ended. */
const MAX_KEPT = 500;
/** Of one command, each once. */
const MAX_SHOWN = 10;

/** What the allow-list has refused, for the output of the commands that tried it. */
export class DenialNotes {
  #denied: Denied[] = [];

  add({ outcome, owner, host, port, startedAtMs }: EgressAttempt): void {
    if (outcome.kind !== "denied") return;
    const shown = port === null ? host : `${host}:${port}`;
    const sentence = describeDenial(outcome.denial, shown);
    const cause: CallCause = { kind: "network-rule", host, port, denial: outcome.denial.kind };
    this.#denied.push({ channel: owner?.channel ?? null, sentence, cause, atMs: startedAtMs });
    if (this.#denied.length > MAX_KEPT) this.#denied = this.#denied.slice(-MAX_KEPT / 2);
  }

  /** Without names that were looked up, since it is not known by which command. Each is there once. */
  causesFor(channel: number): CallCause[] {
    const own = this.#denied.filter((one) => one.channel === channel);
    return [...new Map(own.map(({ sentence, cause }) => [sentence, cause])).values()].slice(0, MAX_SHOWN);
  }

  /** For the end of a command's output; empty if nothing was refused. */
  textFor(command: { channel: number; startedAtMs: number }): string {
    const own = this.#denied.filter(
      ({ channel, atMs }) => channel === command.channel || (channel === null && atMs >= command.startedAtMs),
    );
    const sentences = [...new Set(own.map(({ sentence }) => sentence))];
    if (sentences.length === 0) return "";
    const left = sentences.length - MAX_SHOWN;
    const more = left > 0 ? [`and ${left} more`] : [];
    const lines = [...sentences.slice(0, MAX_SHOWN), ...more].map((one) => `  ${one}`);
    return `\n[brig refused connections. Only the user can allow them, with --network:\n${lines.join("\n")}]\n`;
  }
}
