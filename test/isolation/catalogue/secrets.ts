import type { Assertion } from "./assertion.js";

const secrets = "docker/sandbox/egress/secrets.test.ts";
const aws = "docker/sandbox/egress/aws-secrets.test.ts";
const signing = "unit/sandbox/egress/aws-secrets.test.ts";
const masking = "docker/sandbox/egress/masking.test.ts";
const canaries = "docker/sandbox/egress/canaries.test.ts";
const inspection = "unit/sandbox/egress/inspection.test.ts";

/** What becomes of secrets that stay outside, and of those that are not real. */
export const secretsOutside: readonly Assertion[] = [
  [
    "P1",
    "A secret that stays outside is nowhere in the container, where programs have a placeholder.",
    [secrets, "is nowhere in the container, where its placeholder is found"],
  ],
  [
    "P2",
    "The placeholder is replaced on the way to the secret's own hosts only, in TLS, and where the settings say.",
    [inspection, "is refused to other hosts, and over plain HTTP"],
    [inspection, "may not be sent in %s"],
  ],
  [
    "P3",
    "Keys of AWS are nowhere in the container. Requests are signed outside, for the hosts, regions and services of the settings only.",
    [aws, "is nowhere in the container, which has placeholders of the same form"],
    [aws, "is refused for another service, in words that a model reads"],
    [signing, "is refused over plain HTTP, and to a host that the key is not for"],
  ],
  [
    "P4",
    "Keys that have expired sign nothing, and those that are read after them stay outside as well.",
    [aws, "that expires is read anew, under the same placeholder, and refused once it cannot be read"],
  ],
  [
    "P5",
    "A secret is masked in outputs, results of tools, diffs, records and the session file.",
    [masking, "in its output, which is as long as before"],
    [masking, "is masked in the result of %s"],
    [masking, "is masked in the diff, and applied as it is"],
    [masking, "is masked in what a fork has changed"],
    [masking, "in the record of what it tried to reach, and in what its output says of that"],
    ["e2e/masked-secrets.test.ts", "is nowhere in the folder that has the session file"],
  ],
  [
    "P6",
    "Whoever sends a canary is refused, fails the call and the session, and reaches nothing any more.",
    [canaries, "fail the call that sends one and all later ones, and nothing is reached any more"],
    ["e2e/canaries.test.ts", "fails although the program still runs when the model ends the turn"],
    [
      "unit/sandbox/egress/canaries.test.ts",
      "is found in %s, in TLS that ends at the proxy, after which nothing is reached",
    ],
  ],
];
