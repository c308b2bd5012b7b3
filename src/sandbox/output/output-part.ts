/** A part of an output in the Responses API. */
export type OutputPart =
  | { type: "input_text"; text: string }
  /** `image_url` is a data URL. */
  | { type: "input_image"; image_url: string; detail?: "high" | "original" | undefined };
