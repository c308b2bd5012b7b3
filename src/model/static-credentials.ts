import type { Credentials } from "./provider.js";

/** For an endpoint that wants to know nothing. */
export const noCredentials: Credentials = { headers: async () => ({}), renew: async () => false };

/** A key that stays what it is. White space around it, such as a file's last line break, is not part of it. */
export function bearerKey(key: string): Credentials {
  const authorization = `Bearer ${key.trim()}`;
  return { headers: async () => ({ Authorization: authorization }), renew: async () => false };
}
