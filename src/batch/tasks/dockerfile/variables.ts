const use = /\\([\s\S])|\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?:(:?[-+])([^}]*))?\})/g;

/**
 * Replaces `$NAME`, `${NAME}`, `${NAME:-default}` and `${NAME:+alternative}` as a Dockerfile's builder does. Unknown
 * variables are empty.
 */
export function expandVariables(text: string, variables: ReadonlyMap<string, string>): string {
  return text.replace(
    use,
    (_, escaped, plain, braced, operator: string | undefined, word: string | undefined) => {
      if (escaped !== undefined) return escaped;
      const value = variables.get(plain ?? braced);
      const isSet = operator?.startsWith(":") ? value !== undefined && value !== "" : value !== undefined;
      if (operator?.endsWith("-") && !isSet) return expandVariables(word ?? "", variables);
      if (operator?.endsWith("+")) return isSet ? expandVariables(word ?? "", variables) : "";
      return value ?? "";
    },
  );
}
