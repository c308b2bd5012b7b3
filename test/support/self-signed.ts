import { readFileSync } from "node:fs";

const fixture = (name: string) => readFileSync(new URL(`../fixtures/tls/${name}`, import.meta.url));

/** A certificate of nobody's, for servers of tests. */
export const selfSigned = { key: fixture("key.pem"), cert: fixture("certificate.pem") };
