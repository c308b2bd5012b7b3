/** Settings for building an image. */
export interface BuildOptions {
  tag: string;
  dockerfile?: string;
  buildArgs?: Record<string, string>;
  labels?: Record<string, string>;
  /** Whether BuildKit builds it. Podman has one builder, and takes no notice. Default: the classic builder. */
  usesBuildKit?: boolean;
  /** Whether its commands have a network. Default: true. */
  hasNetwork?: boolean;
  /** Called with each line of the engine's progress. */
  onProgress?: (line: string) => void;
  signal?: AbortSignal;
}

export interface PullOptions {
  onProgress?: (line: string) => void;
  signal?: AbortSignal;
}
