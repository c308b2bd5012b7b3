import type { ApprovalPolicy } from "../../sandbox/index.js";

/** Place and settings of the session, as the model is told. */
export interface SessionSetting {
  /** Absolute path inside the sandbox. */
  cwd: string;
  /** A mode such as `workspace-write`, or the name of a policy file. */
  sandboxMode: string;
  network:
    | { kind: "none" }
    | { kind: "full" }
    | { kind: "allowlist"; hosts: readonly string[]; learns?: true | undefined };
  /** When a person is asked for approval. Default: never. */
  approvalPolicy?: ApprovalPolicy | undefined;
  /** Writable directories besides the working directory. */
  writableRoots: readonly string[];
  /** The shell's name or path. */
  shell: string;
  /** A time zone such as `Europe/Berlin`. */
  timezone: string;
}

/** The context that the conversation last gave the model about where and how it works. */
export interface SentContext {
  setting: SessionSetting;
  /** `YYYY-MM-DD` in the setting's time zone. */
  date: string;
}

export function sentContext(setting: SessionSetting, now: Date): SentContext {
  return { setting, date: localDate(now, setting.timezone) };
}

/** Servers and CI use UTC, which needs no `Intl`: loading its time zones takes five milliseconds. */
const utc = /^(?:Etc\/)?(?:UTC|UCT|Universal|Zulu|GMT)$/;

/** Creating a format takes a third of a millisecond, as long as everything else at the start of a turn. */
const dateFormats = new Map<string, Intl.DateTimeFormat>();

/** Returns `YYYY-MM-DD` in a time zone, or in UTC if there is no such zone: TZ may contain anything. */
export function localDate(now: Date, timezone: string): string {
  if (utc.test(timezone)) return now.toISOString().slice(0, 10);
  const format = dateFormats.get(timezone) ?? dateFormat(timezone);
  dateFormats.set(timezone, format);
  return format.format(now);
}

function dateFormat(timezone: string): Intl.DateTimeFormat {
  try {
    return new Intl.DateTimeFormat("sv-SE", { timeZone: timezone, dateStyle: "short" });
  } catch {
    return dateFormat("UTC");
  }
}
