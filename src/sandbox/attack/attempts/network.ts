import { type Attempt, nothing } from "./attempt.js";

const unreachable = ["ENETUNREACH", "EADDRNOTAVAIL"];
const leaves = { none: "nothing is sent to the internet to try it; the control is the host's own address" };

/** Attempts to reach somebody over a network. */
export const network: readonly Attempt[] = [
  {
    id: "A16",
    attempt: "metadata-service",
    title: "no cloud's metadata service can be reached",
    meaning: "a command can ask the cloud for the machine's own logins",
    refusals: unreachable,
    control: leaves,
    permittedBy: ["network"],
  },
  {
    id: "A16",
    attempt: "metadata-service-6",
    title: "no cloud's metadata service can be reached over IPv6",
    meaning: "a command can ask the cloud for the machine's own logins",
    refusals: unreachable,
    control: leaves,
    permittedBy: ["network"],
  },
  {
    id: "E1",
    attempt: "interfaces",
    title: "there is no network interface but loopback",
    meaning: "a command has a network that brig does not filter",
    refusals: nothing,
    permittedBy: ["network"],
  },
  {
    id: "E2",
    attempt: "host-address",
    title: "the host cannot be reached at its own addresses",
    meaning: "a command can talk to services of this machine",
    refusals: unreachable,
    permittedBy: ["network"],
  },
  {
    id: "E2",
    attempt: "public-addresses",
    title: "no public address can be reached",
    meaning: "what a command has read can leave",
    refusals: unreachable,
    control: leaves,
    permittedBy: ["network"],
  },
  {
    id: "E2",
    attempt: "public-addresses-6",
    title: "no public address can be reached over IPv6",
    meaning: "what a command has read can leave",
    refusals: unreachable,
    control: leaves,
    permittedBy: ["network"],
  },
  {
    id: "E3",
    attempt: "name-lookup",
    title: "nobody can be asked for a name",
    meaning: "what a command has read can leave in the names it asks for",
    refusals: ["EAI_AGAIN", "EAI_NONAME"],
    control: leaves,
    permittedBy: ["network"],
  },
  {
    id: "E3",
    attempt: "datagram-out",
    title: "no datagram leaves",
    meaning: "what a command has read can leave",
    refusals: unreachable,
    control: leaves,
    permittedBy: ["network"],
  },
  {
    id: "E4",
    attempt: "host-loopback",
    title: "what listens on the host's loopback cannot be reached",
    meaning: "a command can talk to services that only this machine's own programs should reach",
    refusals: ["ECONNREFUSED"],
  },
  {
    id: "E4",
    attempt: "host-loopback-datagram",
    title: "what listens on the host's loopback cannot be reached with a datagram",
    meaning: "a command can talk to services that only this machine's own programs should reach",
    refusals: ["ECONNREFUSED"],
  },
];
