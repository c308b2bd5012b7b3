/** Something that the engine has seen of a container. */
export interface ContainerEvent {
  /** "create", "start", "kill" by somebody outside, "oom" of any process, "die", "destroy" … */
  action: string;
  atMs: number;
  /** Of "die"; null if the engine does not say. */
  exitCode: number | null;
}
