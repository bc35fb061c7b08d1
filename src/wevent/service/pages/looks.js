// Colours as in all pictures of wevent (wevent.plotting.style); a test compares them.

const LOOKS = {
  pft: "#C7610D",
  pba: "#0071D0",
  ba: "#9CBBFF",
  pbd: "#305346",
  bd: "#2AD3A2",
  pbu: "#612E7B",
  uniform: "#C469A6",
  sample: "#E1B500",
  plbu: "#6C350C",
  lbu: "#998455",
};

const OTHERS = ["#A3123F", "#6E8B00", "#00909E", "#7D7DE0", "#555555", "#E0607E", "#3B6FA0"];

export const LADDER = [
  "#00224e",
  "#123570",
  "#3b496c",
  "#575d6d",
  "#707173",
  "#8a8678",
  "#a59c74",
  "#c3b369",
  "#e1cc55",
  "#fee838",
];

/** The colour of a mechanism; one that is not built in gets it from its name, the same everywhere. */
export function colourOf(mechanism) {
  const name = mechanism.split(":")[0];
  return LOOKS[name] ?? OTHERS[checksum(name) % OTHERS.length];
}

/** The colour, lighter in the dark. */
export function shownIn(colour, dark) {
  const by = dark ? 1.45 : 1;
  return parts(colour).map((part) => Math.min(255, Math.round(part * by)));
}

const parts = (colour) => [1, 3, 5].map((place) => parseInt(colour.slice(place, place + 2), 16));

function checksum(text) {
  let rest = 0xffffffff;
  for (const byte of new TextEncoder().encode(text)) {
    rest ^= byte;
    for (let bit = 0; bit < 8; bit += 1) rest = (rest >>> 1) ^ (0xedb88320 & -(rest & 1));
  }
  return (rest ^ 0xffffffff) >>> 0;
}
