import { allocate, formatMoney, parseMoney, percentageOf, sum } from "./money.js";

/** An invoice of lines with a price each, and perhaps a discount on all of them. */
export function createInvoice({ number, lines, discount = "0" }) {
  const priced = lines.map(({ text, quantity, price, taxRate }) => ({
    text,
    quantity,
    price: parseMoney(price),
    taxRate,
  }));
  return complete({ number, lines: priced, discount: parseMoney(discount) });
}

/** Takes an invoice back, with all that belongs to it. */
export function creditNoteFor(invoice, number) {
  const lines = invoice.lines.map(({ text, quantity, price, taxRate }) => ({
    text,
    quantity: -quantity,
    price,
    taxRate,
  }));
  return complete({ number, lines, discount: -invoice.discount });
}

/** The invoice as a text with one line for each item and each figure below them. */
export function renderInvoice({ number, lines, discount, taxes, net, gross }) {
  const rows = [
    ...lines.map(({ text, quantity, amount }) => [`${quantity} x ${text}`, amount]),
    ...(discount === 0 ? [] : [["Discount", -discount]]),
    ["Net", net],
    ...taxes.map(({ rate, tax }) => [`Tax ${rate} %`, tax]),
    ["Total", gross],
  ];
  const width = Math.max(...rows.map(([label]) => label.length));
  const body = rows.map(([label, cents]) => `${label.padEnd(width)}  ${formatMoney(cents).padStart(10)}`);
  return [`Invoice ${number}`, ...body].join("\n");
}

function complete({ number, lines, discount }) {
  const amounts = lines.map(({ quantity, price }) => quantity * price);
  const discounts = allocate(discount, amounts.map(Math.abs));
  const settled = lines.map((line, index) => ({
    ...line,
    amount: amounts[index],
    net: amounts[index] - discounts[index],
  }));
  const taxes = taxesOf(settled);
  const net = sum(settled.map((line) => line.net));
  return { number, lines: settled, discount, taxes, net, gross: net + sum(taxes.map(({ tax }) => tax)) };
}

/** One entry for each rate, the lowest first. */
function taxesOf(lines) {
  const rates = [...new Set(lines.map(({ taxRate }) => taxRate))].sort((a, b) => a - b);
  return rates.map((rate) => {
    const net = sum(lines.filter(({ taxRate }) => taxRate === rate).map((line) => line.net));
    return { rate, net, tax: percentageOf(net, rate) };
  });
}
