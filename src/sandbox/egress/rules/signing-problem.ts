/** Why a request that a program signed with a placeholder cannot be signed with the real key of AWS. */
export type SigningProblem =
  /** The signature is in the URL, as in URLs that are made to be passed on. */
  | { kind: "in-url" }
  /** Signature Version 4A. */
  | { kind: "asymmetric" }
  | { kind: "unreadable" }
  | { kind: "region"; region: string }
  | { kind: "service"; service: string }
  /** Each part of the body is signed, and each signature depends on the one before. */
  | { kind: "signed-chunks" }
  /** The checksum of the body is needed, and the body has more bytes than are kept for it. */
  | { kind: "body"; maxBytes: number }
  /** The request may be signed as one path and sent as another. */
  | { kind: "path" }
  /** The keys have expired, and others could not be read. */
  | { kind: "expired" }
  /** The header is there twice, or is not ASCII. */
  | { kind: "header"; header: string };

/** Text for the end of a sentence, with what to do instead. */
export function describeSigningProblem(problem: SigningProblem): string {
  switch (problem.kind) {
    case "in-url":
      return "the signature is in the URL, and only signatures in the header Authorization are made anew";
    case "asymmetric":
      return "it has a signature of Version 4A; requests to one region have Version 4";
    case "unreadable":
      return "its header Authorization is not one of Signature Version 4";
    case "region":
      return `it is for the region ${problem.region}, which the settings do not list`;
    case "service":
      return `it is for the service ${problem.service}, which the settings do not list`;
    case "signed-chunks":
      return "each part of its body is signed; make the client send the body unsigned or in one piece, for example with chunkedEncodingEnabled(false) in Java";
    case "body":
      return `its body is too large (more than ${problem.maxBytes} bytes are not kept to be signed); send its checksum in x-amz-content-sha256`;
    case "path":
      return "its path can be read in two ways";
    case "expired":
      return "the keys have expired, and the command that prints them has failed or printed expired ones; the user has to run it by hand";
    case "header":
      return `its header ${problem.header} is there twice or is not ASCII`;
    default:
      return problem satisfies never;
  }
}
