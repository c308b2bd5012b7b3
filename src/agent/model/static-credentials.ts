import type { Credentials } from "./provider.js";

/** For an endpoint that needs no credentials. */
export const noCredentials: Credentials = { headers: async () => ({}), renew: async () => false };

/** A fixed API key. White space around it, such as the last line break of a file, is ignored. */
export function bearerKey(key: string): Credentials {
  const authorization = `Bearer ${key.trim()}`;
  return { headers: async () => ({ Authorization: authorization }), renew: async () => false };
}
