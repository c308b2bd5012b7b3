import assert from "node:assert/strict";
import { test } from "node:test";
import { createInvoice, creditNoteFor, renderInvoice } from "../src/invoice.js";

const order = {
  number: "2026-0042",
  lines: [
    { text: "Oak shelf", quantity: 1, price: "40.00", taxRate: 19 },
    { text: "Bracket", quantity: 8, price: "5.00", taxRate: 19 },
    { text: "Handbook", quantity: 1, price: "40.00", taxRate: 7 },
  ],
  discount: "10.00",
};

test("a discount is spread over the lines to the cent", () => {
  const invoice = createInvoice(order);
  assert.deepEqual(
    invoice.lines.map(({ net }) => net),
    [3666, 3667, 3667],
  );
  assert.equal(invoice.net, 11000);
});

test("tax is computed once for each rate", () => {
  assert.deepEqual(createInvoice(order).taxes, [
    { rate: 7, net: 3667, tax: 257 },
    { rate: 19, net: 7333, tax: 1393 },
  ]);
});

test("an invoice is rendered with its figures below each other", () => {
  const text = renderInvoice(createInvoice(order));
  assert.match(text, /^Invoice 2026-0042\n1 x Oak shelf {7}40\.00\n/);
  assert.match(text, /\nTotal {14}126\.50$/);
});

test("a credit note is the exact negative of its invoice", () => {
  const invoice = createInvoice(order);
  const creditNote = creditNoteFor(invoice, "2026-0043");
  assert.equal(creditNote.net, -invoice.net);
  assert.equal(creditNote.gross, -invoice.gross);
});
