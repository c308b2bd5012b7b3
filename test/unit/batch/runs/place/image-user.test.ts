import { describe, expect, it } from "vitest";
import { findUser } from "../../../../../src/batch/runs/place/image-user.js";

const databases = {
  passwd:
    "root:x:0:0:root:/root:/bin/bash\nagent:x:1000:1001::/home/agent:/bin/sh\nodd:x:5:5::/a b:/bin/sh\nbad:x:x:y\n",
  group: "root:x:0:\nstaff:x:50:\n",
};

describe("the user of a task", () => {
  it.each([
    ["agent", { uid: 1000, gid: 1001, home: "/home/agent" }],
    ["1000", { uid: 1000, gid: 1001, home: "/home/agent" }],
    ["agent:staff", { uid: 1000, gid: 50, home: "/home/agent" }],
    ["agent:7", { uid: 1000, gid: 7, home: "/home/agent" }],
    ["4711", { uid: 4711, gid: 0, home: "/tmp" }],
    ["4711:12", { uid: 4711, gid: 12, home: "/tmp" }],
    ["odd", { uid: 5, gid: 5, home: "/tmp" }],
  ])("%s is looked up in the image", (wanted, found) => {
    expect(findUser(wanted, databases)).toEqual(found);
  });

  it.each(["nobody-here", "agent:nobody-here", "bad", "-1", "1e3", ""])("%j is refused", (wanted) => {
    expect(findUser(wanted, databases)).toBeNull();
  });
});
