/** What an image was built for: a task of a batch, or a sandbox on the files of a project. */
export type BuiltFor = "task" | "project";

/** The repositories of all images that brig builds from Dockerfiles; the tag is the hash of what they are built from. */
export const repositoryOf: Readonly<Record<BuiltFor, string>> = {
  task: "brig-task",
  project: "brig-project",
};
