import type { ApprovalPolicy } from "../policy/approval-policy.js";

/** Where and how the session runs, as far as the model is told. */
export interface SessionSetting {
  /** Absolute path inside the sandbox. */
  cwd: string;
  /** E.g. `workspace-write`, or the name of a policy file. */
  sandboxMode: string;
  network: { kind: "none" } | { kind: "full" } | { kind: "allowlist"; hosts: readonly string[] };
  /** When a person is asked. Default: never. */
  approvalPolicy?: ApprovalPolicy | undefined;
  /** Directories besides the working directory that may be written to. */
  writableRoots: readonly string[];
  /** Name or path of the shell. */
  shell: string;
  /** E.g. `Europe/Berlin`. */
  timezone: string;
}

/** What the conversation last told the model about where and how it works. */
export interface SentContext {
  setting: SessionSetting;
  /** `YYYY-MM-DD` in the setting's time zone. */
  date: string;
}

export function sentContext(setting: SessionSetting, now: Date): SentContext {
  return { setting, date: localDate(now, setting.timezone) };
}

/** What servers and CI run in needs no knowledge of zones, which takes five milliseconds to load. */
const utc = /^(?:Etc\/)?(?:UTC|UCT|Universal|Zulu|GMT)$/;

/** Making one takes a third of a millisecond, as much as all else that a turn begins with. */
const dateFormats = new Map<string, Intl.DateTimeFormat>();

/** `YYYY-MM-DD` in a time zone; in UTC where there is no such zone, as TZ may say anything. */
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
