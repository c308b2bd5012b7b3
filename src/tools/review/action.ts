/** The session's own sandbox, or its second one, which has full access. */
export type SandboxPlace = "sandbox" | "escalated";

/** What a model says about leaving the sandbox. */
export interface EscalationRequest {
  isAsked: boolean;
  /** The model's words to the user. */
  justification: string | null;
  /** A beginning of commands that the model proposes to allow in the future. */
  prefixRule: readonly string[] | null;
}

/** A command that is about to start. */
export interface CommandToReview {
  kind: "command";
  /** The tool that was asked to run it. */
  tool: string;
  /** As the model wrote it: what a person is shown and what is judged. */
  argv: readonly string[];
  /** Absolute path inside the sandbox. */
  cwd: string;
  /** Whether the program may still run when the call has returned. The model can type into it then, and nobody reviews what it types. */
  takesInput: boolean;
  escalation: EscalationRequest;
}

/** A patch that is about to be applied. */
export interface PatchToReview {
  kind: "patch";
  tool: string;
  /** The patch as the model wrote it. */
  patch: string;
  changes: readonly FileChange[];
  /** Absolute path inside the sandbox that the patch's relative paths start from. */
  cwd: string;
}

/** What a tool is about to do. */
export type ActionToReview = CommandToReview | PatchToReview;

/** What a patch does to one file. A file that moves is an update of where it was. */
export interface FileChange {
  path: string;
  kind: "add" | "delete" | "update";
}
