"""A model of well-formed messages, written from wire.md and not from the library: the oracle of test_codec."""
import msgpack

# id: (fields, class, most outputs, inputs and parameters by row are looked up in the tables)
MESSAGES = {1: "uuusm", 2: "uuuym", 3: "uuuyum", 4: "yu", 16: "F", 17: "[u]", 18: "uu", 19: "uu[F][D][v]", 20: "uu[F][D][v]",
            21: "uu[F][D][v]", 22: "uuu", 23: "u", 24: "u", 25: "uuu", 26: "u", 27: "uu", 28: "uu", 29: "u", 30: "uuuuu", 31: "F",
            48: "uD", 49: "u", 50: "u", 51: "uuu[F][D][v]", 52: "uDuu", 53: "uuu", 54: "uuu", 55: "uuu", 56: "uuuu",
            57: "uu", 32: "u", 33: "us[u][F][D][y]", 34: "usuuu", 58: "uut[s][s]", 59: "uus", 60: "uusu", 40: "uuy", 41: "uu",
            70: "uuuuu", 71: "uuuu", 72: "uDuss", 73: "uuss", 74: "us", 75: "uu", 76: "uuu", 77: "uuuuuuus", 78: "uuuuss",
            64: "uu[v]", 65: "uuuuss", 66: "u",
            67: "us"}
CLASS = {1: 0, 3: 0, **dict.fromkeys([*range(16, 35), 40, 41], 1), **dict.fromkeys([*range(48, 61), *range(70, 79)], 2)}
# the others: 3
NDTYPE = 15
WELCOME_NUMBERS = {"window_ops", "window_bytes", "max_payload", "max_control", "max_buffers", "devices", "memory", "pid",
                   "resume", "instance"}
WELCOME_TEXTS = {"backend", "device_name", "server", "name", "principal", "peers"}


def is_int(x):
    return isinstance(x, int) and not isinstance(x, bool)


def is_unsigned(x, bits=64):
    return is_int(x) and 0 <= x < 2**bits


def is_signed(x):
    return is_int(x) and -2**63 <= x < 2**63


def is_text(x):
    return isinstance(x, str) and len(x.encode()) <= 65535


def is_scalar(x):
    if isinstance(x, msgpack.ExtType):
        return x.code == 1 and len(x.data) == 16
    return x is None or isinstance(x, (bool, float)) or is_int(x)


def form(x):
    """Return view, fresh or sized; None for what is no description."""
    if not isinstance(x, list) or not 3 <= len(x) <= 5 or not is_unsigned(x[0]) or not is_unsigned(x[1]):
        return None
    if x[1] >= NDTYPE or (len(x) == 3 and x[0] == 0):
        return None
    if len(x) == 3 and x[2] is None:
        return "sized"
    if len(x) > 3 and not is_unsigned(x[2], 63):
        return None
    shape = x[2] if len(x) == 3 else x[3]
    if not isinstance(shape, list) or len(shape) > 32 or not all(is_unsigned(n, 63) for n in shape):
        return None
    if len(x) == 5 and not (isinstance(x[4], list) and len(x[4]) == len(shape) and all(map(is_signed, x[4]))):
        return None
    return "fresh" if len(x) == 3 else "view"


def is_input(x):
    return form(x) == "view" if isinstance(x, list) else x is not None and is_scalar(x)


FIELD = {
    "u": is_unsigned, "s": is_text, "y": lambda x: isinstance(x, bytes) and len(x) <= 65535,
    "m": lambda x: isinstance(x, dict) and all(map(is_text, x)), "F": lambda x: form(x) is not None, "D": is_input,
    "v": is_scalar, "t": lambda x: isinstance(x, str) and len(x.encode()) <= 900_000,
}


def letters(signature):
    """'uu[F]' -> ['u', 'u', '[F]']"""
    out, i = [], 0
    while i < len(signature):
        step = 3 if signature[i] == "[" else 1
        out.append(signature[i:i + step])
        i += step
    return out


def is_field(letter, x):
    if letter[0] == "[":
        return isinstance(x, list) and all(FIELD[letter[1]](item) for item in x)
    return FIELD[letter](x)


class Model:
    """rows: {message id: {row: (outputs, inputs, parameters)}} for ufunc, reduce, call and query."""

    def __init__(self, rows):
        self.rows = rows

    def accepts(self, message, allowed=0xf):
        if not isinstance(message, list) or not message or not is_unsigned(message[0]) or message[0] not in MESSAGES:
            return False
        number, *values = message
        signature = letters(MESSAGES[number])
        if not allowed >> CLASS.get(number, 3) & 1 or len(values) != len(signature):
            return False
        if not all(map(is_field, signature, values)):
            return False
        if CLASS.get(number) == 2 and values[0] == 0:
            return False
        if number in (1, 3) and not (is_text(values[-1].get("token", "")) and
                                     is_unsigned(values[-1].get("process", 0))):
            return False
        if number in (3, 4, 40):
            return len(values[{3: 3, 4: 0, 40: 2}[number]]) == 16
        if number == 2:
            return len(values[3]) == 16 and all(
                (k not in WELCOME_NUMBERS or is_unsigned(v)) and (k not in WELCOME_TEXTS or is_text(v))
                for k, v in values[4].items())
        if number in (16, 31):
            return form(values[0]) == "fresh"
        if number in (48, 52, 72):
            return isinstance(values[1], list)
        if number == 34:
            return max(values[2:]) < 2**32 and values[4] <= 2
        if number == 33:
            return self.accepts_launch(*values[2:])
        return self.accepts_operation(number, values) if number in self.rows else True

    @staticmethod
    def accepts_launch(numbers, written, read, given):
        sizes, kinds = numbers[:7], numbers[7:]
        if len(sizes) < 7 or len(kinds) > 255 or max(sizes) >= 2**32 or any(k > 4 for k in kinds):
            return False
        if [sum(k in these for k in kinds) for these in ((0, 3), (1, 4), (2, 3, 4))] != [
                len(written), len(read), len(given)]:
            return False
        if any(k > 2 and len(value) < 8 for k, value in zip([k for k in kinds if k > 1], given)):
            return False
        return all(form(x) in ("view", "fresh") for x in written) and all(form(x) == "view" for x in read)

    def accepts_operation(self, number, values):
        row, loop, outputs, inputs, parameters = values[-5:]
        if row not in self.rows[number] or loop >= NDTYPE:
            return False
        limits = self.rows[number][row]
        if any(len(x) > limit for x, limit in zip((outputs, inputs, parameters), limits)):
            return False
        return all((form(x) == "sized") == (number == 51) for x in outputs)
