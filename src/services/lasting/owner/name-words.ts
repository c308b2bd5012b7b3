/** The words of names that nobody chose: short, easy to type, and without a second meaning. */
export const FIRST_WORDS = words(
  "amber azure brave brisk bright calm clear cosy crisp early fair fast fine fresh gentle glad golden grand green happy " +
    "jolly keen kind large late light lively lucky mellow merry mild neat noble plain polite proud quick quiet rapid ready " +
    "round royal sharp shiny silent silver simple smart smooth snowy soft solid steady still sunny swift tidy warm wide wise",
);

export const SECOND_WORDS = words(
  "acorn anchor badger bay beach birch bridge brook canoe cedar cliff cloud comet coral crane creek dune eagle ember falcon " +
    "fern field finch forest fox garden glacier harbor hazel heron hill island jay kite lagoon lake lantern lark maple " +
    "marsh meadow moon moss oak ocean otter owl pebble pine pond prairie raven reef ridge river robin sail seal shore " +
    "sparrow spring stone stream summit swan thicket tide trout valley walnut wave willow wren",
);

function words(text: string): readonly string[] {
  return text.split(" ");
}
