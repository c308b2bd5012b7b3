/** Why git does not work in a workspace. The sandbox starts without the repository. */
export class Unusable extends Error {
  readonly hint: string;

  constructor(reason: string, hint: string, cause?: unknown) {
    super(reason, { cause });
    this.hint = hint;
  }
}
