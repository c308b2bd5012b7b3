import { z } from "zod";

/** A higher number is no price of a million tokens, but a mistake such as a price in cents. */
const HIGHEST_PRICE = 100_000;

const dollars = z.number().min(0).max(HIGHEST_PRICE);

export const pricesSchema = z.record(
  z.string(),
  z.object({
    // Required, but a layer of the configuration may have only one of them: `priceOfModel` checks them together.
    input: dollars.optional().describe("US dollars for a million input tokens"),
    cached_input: dollars
      .optional()
      .describe("The same for those that the endpoint had in its cache")
      .meta({ fallback: "as `input`" }),
    cache_write_input: dollars
      .optional()
      .describe("The same for those that it wrote to its cache")
      .meta({ fallback: "as `input`" }),
    output: dollars.optional().describe("The same for output tokens, reasoning included"),
  }),
);

/** The user's own prices, by model. */
export type OwnPrices = Readonly<z.infer<typeof pricesSchema>>;
