/** An entry of the engine's own log of events about one container. */
export interface ContainerEvent {
  /** "create", "start", "kill" by somebody outside, "oom" of any process, "die", "destroy" … */
  action: string;
  atMs: number;
  /** The exit code of the main process. Only "die" has one; null if the engine does not say. */
  exitCode: number | null;
}
