const reference =
  /\$(?:(?<escaped>\$)|(?<bare>[A-Za-z_][A-Za-z0-9_]*)|\{(?<name>[A-Za-z_][A-Za-z0-9_]*)(?:(?<operator>:?[-?+])(?<word>[^{}]*))?\}|(?<invalid>))/g;

export type Interpolated =
  | { kind: "text"; text: string }
  | { kind: "refused"; reason: string; missingVariable?: string | undefined };

/** Fills in `$NAME`, `${NAME}`, `${NAME:-default}` and the like as Compose does. A missing variable is refused. */
export function interpolated(
  text: string,
  variables: Readonly<Record<string, string | undefined>>,
): Interpolated {
  let reason: string | null = null;
  let missingVariable: string | undefined;
  const filled = text.replace(reference, (...match) => {
    const groups = match.at(-1) as Record<string, string | undefined>;
    if (groups.escaped !== undefined) return "$";
    const name = groups.bare ?? groups.name;
    if (name === undefined) reason ??= "has a $ that is no variable; write $$ for the character";
    const value = name !== undefined && Object.hasOwn(variables, name) ? variables[name] : undefined;
    const chosen = choice(value, groups.operator ?? "", groups.word ?? "");
    if (chosen === null) {
      reason ??= `asks for the variable ${name}, which is not set`;
      missingVariable ??= name;
    }
    return chosen ?? "";
  });
  return reason === null ? { kind: "text", text: filled } : { kind: "refused", reason, missingVariable };
}

function choice(value: string | undefined, operator: string, word: string): string | null {
  const isSet = value !== undefined && !(operator.startsWith(":") && value === "");
  if (operator.endsWith("+")) return isSet ? word : "";
  if (isSet) return value;
  return operator.endsWith("-") ? word : null;
}
