/**
 * The text of each mode's policy file, and the parsed policy as JSON. The list is empty in the source. The
 * build fills it in, so that loading one of these files needs no parser.
 */
export const compiledPolicies: readonly { toml: string; json: string }[] = [];
