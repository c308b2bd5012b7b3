/** Linux numbers. The host may not be Linux, so its own table does not serve. */
const numbers = {
  SIGHUP: 1,
  SIGINT: 2,
  SIGQUIT: 3,
  SIGILL: 4,
  SIGTRAP: 5,
  SIGABRT: 6,
  SIGBUS: 7,
  SIGFPE: 8,
  SIGKILL: 9,
  SIGUSR1: 10,
  SIGSEGV: 11,
  SIGUSR2: 12,
  SIGPIPE: 13,
  SIGALRM: 14,
  SIGTERM: 15,
  SIGSTKFLT: 16,
  SIGCHLD: 17,
  SIGCONT: 18,
  SIGSTOP: 19,
  SIGTSTP: 20,
  SIGTTIN: 21,
  SIGTTOU: 22,
  SIGURG: 23,
  SIGXCPU: 24,
  SIGXFSZ: 25,
  SIGVTALRM: 26,
  SIGPROF: 27,
  SIGWINCH: 28,
  SIGIO: 29,
  SIGPWR: 30,
  SIGSYS: 31,
} as const satisfies Partial<Record<NodeJS.Signals, number>>;

const aliases = { SIGIOT: 6, SIGPOLL: 29, SIGUNUSED: 31 } as const satisfies Partial<
  Record<NodeJS.Signals, number>
>;

const byName = new Map<string, number>(Object.entries({ ...numbers, ...aliases }));
const byNumber = new Map(Object.entries(numbers).map(([name, number]) => [number as number, name]));

/** Null for a number without a name, such as that of a real-time signal. */
export function signalName(number: number): NodeJS.Signals | null {
  return (byNumber.get(number) as NodeJS.Signals | undefined) ?? null;
}

/** Undefined for a name that Linux does not have. */
export function signalNumber(name: string): number | undefined {
  return byName.get(name);
}
