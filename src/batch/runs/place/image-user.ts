import { BrigError } from "../../../errors.js";
import type { ImageSummary } from "../../../sandbox/index.js";
import { ImageFiles, textOfArchive } from "./image-files.js";
import type { RecordedPlace } from "./never-started.js";

export interface ImageUser {
  uid: number;
  gid: number;
  home: string;
}

export const rootUser: ImageUser = { uid: 0, gid: 0, home: "/root" };

/**
 * The user that a task or its image names: `user` or `user:group`, each a name or a number. Error: `usage.invalid`
 * for a name that the image does not have.
 */
export async function imageUser(
  place: RecordedPlace,
  { image, user }: { image: ImageSummary; user: string | null },
): Promise<ImageUser> {
  const wanted = user ?? image.user;
  if (["", "0", "root", "0:0", "root:root"].includes(wanted)) return rootUser;
  const databases = await readDatabases(place, image.id);
  const found = findUser(wanted, databases);
  if (found !== null) return found;
  throw new BrigError(`the image has no user ${JSON.stringify(wanted)}`, {
    code: "usage.invalid",
    hint: "name a user of the image's /etc/passwd, or a number",
  });
}

interface UserDatabases {
  passwd: string;
  group: string;
}

/** Null if there is no such user. Exported for tests. */
export function findUser(wanted: string, { passwd, group }: UserDatabases): ImageUser | null {
  const [name = "", groupName] = wanted.split(":");
  const users = passwd.split("\n").map((line) => line.split(":"));
  const entry = users.find(([login, , uid]) => login === name || uid === name);
  const uid = asNumber(entry?.[2] ?? name);
  const gid = groupName === undefined ? asNumber(entry?.[3] ?? "0") : groupNumber(groupName, group);
  if (uid === null || gid === null) return null;
  return { uid, gid, home: homeOf(entry?.[5]) };
}

function groupNumber(name: string, group: string): number | null {
  const entry = group
    .split("\n")
    .map((line) => line.split(":"))
    .find(([login]) => login === name);
  return asNumber(entry?.[2] ?? name);
}

function asNumber(text: string): number | null {
  return /^[0-9]{1,9}$/.test(text) ? Number(text) : null;
}

/** A home that no policy could name is not used. */
function homeOf(home: string | undefined): string {
  return home !== undefined && /^(?:\/[\w.-]+)+$/.test(home) && !home.includes("..") ? home : "/tmp";
}

async function readDatabases(place: RecordedPlace, image: string): Promise<UserDatabases> {
  await using files = new ImageFiles(place, image);
  const text = async (path: string) => (await textOfArchive(await files.read(path))) ?? "";
  const [passwd, group] = await Promise.all([text("/etc/passwd"), text("/etc/group")]);
  return { passwd, group };
}
