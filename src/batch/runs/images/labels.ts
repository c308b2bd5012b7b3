/** The repository of all images that brig builds for tasks; the tag is the hash of what they are built from. */
export const taskImageRepository = "brig-task";

/** Images that are built on one of these inherit the labels, so an image of brig also has a tag of the repository. */
export const taskImageLabels = {
  /** The hash, as in the tag. */
  hash: "brig.task-image",
  /** The task for which it was built first. */
  task: "brig.task",
  /** The ids of the images it was built from, separated by spaces. */
  bases: "brig.task-bases",
} as const;
