/** Where the program of a stdio server runs. */
export type ServerPlace =
  /** A container of its own. Without an image it has that of the session. */
  | { kind: "own"; image: string | null; network: "none" | "full" }
  /** The sandbox in which the commands of the session run. */
  | { kind: "session" }
  /** This machine. Nothing contains it. */
  | { kind: "host" };
