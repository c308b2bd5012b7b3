/** An entry of the engine's own log of events about one container. */
export interface ContainerEvent {
  /** "create", "start", "kill" by somebody outside, "oom" of any process, "die", "destroy" … */
  action: string;
  atMs: number;
  /** With which the main process ended. Only "die" has one; null if the engine does not say. */
  exitCode: number | null;
}
