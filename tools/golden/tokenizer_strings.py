"""The strings of the tokenizer's golden data, and the text its small vocabulary is trained on. Both are made here."""
import random
import unicodedata

# A few everyday words per script; sentences are drawn from them.
WORDS = {
    "latin": "the a house water people time and we walk to river under old light they'll don't it's I'm you've he'd we're",
    "german": "der die das Straße größer Übung läuft nicht für schön Wörter und über zwölf Füße",
    "french": "l'été où ça garçon être déjà œuvre naïf c'est aujourd'hui qu'il forêt",
    "polish": "źdźbło łąka żółw część mówić święto ćma dzień",
    "vietnamese": "Việt Nam nước người đường không được những tiếng",
    "turkish": "İstanbul ışık güneş çocuk öğle ağaç",
    "greek": "το νερό και η θάλασσα άνθρωπος φως σπίτι ώρα",
    "cyrillic": "вода и свет дом который время человек идёт под мостом ёлка",
    "ukrainian": "їжак ґанок єдність зі мною вечір",
    "armenian": "ջուր տուն մարդ լույս ժամանակ",
    "georgian": "წყალი სახლი ადამიანი დრო",
    "hebrew": "מים בית אדם שלום זמן עִבְרִית",
    "arabic": "ماء بيت الناس وقت السلام عَرَبِيّ كتاب",
    "persian": "آب خانه می‌روم زمان کتاب‌ها",
    "devanagari": "पानी घर मनुष्य समय नमस्ते हिन्दी क्षेत्र",
    "bengali": "জল ঘর মানুষ সময় বাংলা",
    "tamil": "நீர் வீடு மனிதன் நேரம் தமிழ்",
    "thai": "น้ำ บ้าน คน เวลา ภาษาไทย",
    "lao": "ນ້ຳ ເຮືອນ ຄົນ",
    "tibetan": "ཆུ་ ཁང་པ་ མི་",
    "khmer": "ទឹក ផ្ទះ មនុស្ស",
    "ethiopic": "ውሃ ቤት ሰው ጊዜ",
    "cherokee": "ᎠᎹ ᎦᎵᏦᏕ ᏴᏫ",
    "mongolian": "ᠤᠰᠤ ᠭᠡᠷ ᠬᠦᠮᠦᠨ",
    "chinese": "水 房子 人们 时间 我们走 河边 光 今天 天气 很好",
    "japanese": "水 いえ ひと カタカナ 時間 わたしたち は 川 ー ゝ",
    "hangul": "물 집 사람 시간 우리는 걷는다 한국어 조선말",
    "jamo": "\u1112\u1161\u11ab \u1100\u1173\u11af",
    "gothic": "𐌰𐌱𐌲 𐌳𐌴𐍂",
    "mathematical": "𝐀𝑏𝒞 𝔻𝟘𝟙 ∑∏∫ ≤≠≈",
}
WHITE_SPACE = [chr(c) for c in (*range(0x9, 0xE), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029,
                                0x202F, 0x205F, 0x3000)]
LOOKS_LIKE_SPACE = ["\u180e", "\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\u00ad", "\x1c", "\x1f", "\x7f", "\x00"]
NUMBERS = list("0123456789") + list("٠١٢٣۴५६৭๓๔༤៥０１２９𝟘𝟡𑁦") + list("ⅣⅫⅷ〇〡ᛮ𐅀") + list("²³¹½¾①⑩⒈㊿㈠௰")
CONTRACTIONS = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "'T", "'RE", "'Ve", "'vE", "'M", "'LL", "'lL", "'D",
                "'ſ", "'ſt", "’s", "'x", "''s", "'", "'l", "'r", "'v"]
EMOJI = ["😀", "👍🏽", "👩‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪🇫🇷", "❤️", "1️⃣", "🧑🏿‍🚀", "☺", "✈︎", "🫠"]
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>", "<think", "→→", "→", "<|im_start|", "<|",
            "|>", "<|endoftext|", "<|im_end|><|im_end|>", "<think><think", "<|im_<|im_start|>", "<thin", "→→→"]
FIXED = [
    "", " ", "  ", "   ", "\n", "\n\n", "\n\n\n", "\t", "\r", "\r\n", "\r\n\r\n", " \n", "\n ", " \n ", "\t\t x", "a ", " a", "a  b",
    "Hello", "Hello world! 123", "The capital of France is", "def fibonacci(n):", "  multiple   spaces", "3.14159", "2  3", "2   ",
    "don't we'll I'M", "line1\nline2\r\n\r\nend", "the", " the", "hello the", "aaaa", "aaaaaa", "     x", "é", "e\u0301", "user 12", "THE",
    "a\u00a0the", "a\u0085b", "a\u2028b", "a\u2029 b", "a\u180eb", "a \u180e b", "\u3000\u3000漢字", "1\u00bd2", "x²+y²=1", "№ 7", "１２３",
    "1234567", "12345678 123456789", "1,234,567.89", "-1e-5", "0x7fff", "٣٤٥٦", "Ⅻ", "①②③④", "\x04", "a\x04b", "\x00\x01\x02", "\x7f",
    "https://example.org/a/b?c=d&e=%20#f", "me@example.org", "C:\\Users\\x", "$100.00", "50%", "#include <vector>", "a->b", "x++;",
    "if (x == 1) {\n    return x;\n}\n", "for i in range(10):\n\tprint(i)\n", "{\"a\": [1, 2, null]}", "<b>bold</b>", "a\\n", "'''", "\"\"\"",
    "...", "......", "!!!", "?!?!", "---", "======", "a.b.c", "a,b", "(a)", "[1]", " Việt", "Việt Nam", " Vi\u1ec7t", "xyzzy", " xyzzy", "a Núñez", " Nu\u0301ñez",
    "\ufeffBOM", "\ufffd", "\ufffd\ufffd", "a\ufffdb", "\U0010ffff", "\ud7ff\ue000", "zero\u200bwidth", "soft\u00adhyphen", "ﬁ ﬀ", "ǅ ǈ", "ªº",
    "a" * 70, " " * 70, "1" * 70, "\n" * 40, "ab" * 50, "!" * 50, "漢" * 40, "😀" * 12, "\u0301" * 12, " \n" * 20, "x " * 20, "' " * 10,
]


def sentence(r, script):
    words = WORDS[script].split()
    text = " ".join(r.choice(words) for _ in range(r.randint(1, 7)))
    return text + r.choice(["", ".", "!", "?", "…", " 12", ", " + r.choice(words)])


def code(r):
    name = r.choice(["x", "value", "n_tokens", "fooBar", "MAX_SIZE", "_tmp1", "i"])
    pad = r.choice(["", "  ", "    ", "\t", "\t\t", "        "])
    return pad + r.choice([f"{name} = {r.randint(0, 9999)}", f"return {name}[{r.randint(0, 20)}];", f"if {name} != None:", f"// {name}",
                           f"std::vector<int> {name}{{}};", f"{name}(a, b)  # note", f"&{name}->field", f"'{name}'", f"f\"{{{name}}}\""]) + \
        r.choice(["", "\n", "\n\n", "\r\n", "\n    "])


def training_text():
    """Sentences of every script, code and numbers; mostly Latin, as real text is."""
    r = random.Random("training text")
    scripts = list(WORDS)
    for _ in range(12000):
        kind = r.random()
        if kind < 0.35:
            yield sentence(r, "latin").capitalize() + r.choice([" ", "\n", "\n\n"])
        elif kind < 0.8:
            yield sentence(r, r.choice(scripts)) + r.choice(["", " ", "  ", "\n"])
        elif kind < 0.92:
            yield "".join(code(r) for _ in range(4))
        else:
            yield f"{r.randint(0, 10 ** r.randint(1, 6))} {r.choice(EMOJI)} {r.choice(CONTRACTIONS)}{'!' * r.randint(0, 4)}"


def joined(r, parts, low, high):
    return "".join(r.choice(parts) for _ in range(r.randint(low, high)))


def random_bytes(r):
    """Bytes that are nearly UTF-8: lead bytes at the borders of what is allowed, too few and too many trail bytes."""
    borders = [0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xED, 0xEE, 0xEF, 0xF0, 0xF1,
               0xF3, 0xF4, 0xF5, 0xFF]
    if r.random() < 0.3:
        return bytes(r.randrange(256) for _ in range(r.randint(1, 8)))
    if r.random() < 0.3:
        text = bytearray(sentence(r, r.choice(list(WORDS))).encode()[:16])
        text[r.randrange(len(text))] = r.choice(borders)
        return bytes(text)
    return bytes(r.choice(borders) for _ in range(r.randint(1, 8)))


def broken_utf8():
    r = random.Random("broken utf-8")
    return [bytes((lead, *tail)) for lead in (0xC1, 0xC2, 0xE0, 0xED, 0xEF, 0xF0, 0xF4, 0xF5)
            for tail in ((), (0x80,), (0x9F, 0x80), (0xA0, 0x80), (0x90, 0x80, 0x80), (0x8F, 0xBF, 0xBF, 0x80), (0x41,), (0x90, 0x41))] + \
        [random_bytes(r) for _ in range(300)]


def strings():
    """All of them; every character is assigned in this Python's Unicode version."""
    r = random.Random("strings")
    assigned = [chr(c) for c in range(0x110000) if unicodedata.category(chr(c)) not in ("Cn", "Cs")]
    planes = [assigned[i:i + 256] for i in range(0, len(assigned), 256)]
    marks = [c for c in assigned if unicodedata.category(c)[0] == "M"]
    formats = [c for c in assigned if unicodedata.category(c) in ("Cf", "Zs", "Zl", "Zp", "Cc")]
    scripts = list(WORDS)
    out = list(FIXED)
    for script in scripts:
        out += [WORDS[script]] + [sentence(r, script) for _ in range(8)]
    out += [sentence(r, r.choice(scripts)) + r.choice(["", " "]) + sentence(r, r.choice(scripts)) for _ in range(80)]
    out += [f"a{c}b 1{c}2 {c} !{c}!" for c in formats[:200]]
    out += [joined(r, WHITE_SPACE + LOOKS_LIKE_SPACE, 1, 4) + joined(r, ["a", "1", "!", "漢", " ", "\n"], 0, 2) + joined(r, WHITE_SPACE, 0, 4)
            for _ in range(250)]
    out += [joined(r, ["  ", " ", "\n", "\r\n", "\t", "a", "the", "12", "'s", "."], 2, 9) for _ in range(250)]
    out += [joined(r, NUMBERS, 1, 9) for _ in range(100)] + [joined(r, NUMBERS + [" ", "  ", "a", ".", "-"], 2, 10) for _ in range(120)]
    out += [joined(r, ["it", "I", "WE", "1", " ", "!", "é"], 0, 1) + c + joined(r, ["", "s", " x", "S", "1", "'"], 0, 1)
            for c in CONTRACTIONS for _ in range(5)]
    out += [joined(r, EMOJI + [" ", "a", "\u200d", "\ufe0f", "🏽"], 1, 4) for _ in range(80)]
    out += [joined(r, ["a", "e", "न", "ก", "א", " ", "1"] + r.sample(marks, 6), 2, 8) for _ in range(100)]
    out += [joined(r, SPECIALS + ["a", " ", "\n", "user\n", "<", "|"], 1, 6) for _ in range(250)]
    out += [code(r) + code(r) for _ in range(80)]
    out += [joined(r, assigned, 1, 8) for _ in range(150)]
    out += [joined(r, r.choice(planes) + [" "], 1, 8) for _ in range(250)]
    out += [joined(r, [chr(c) for c in range(128)], 1, 12) for _ in range(120)]
    out += [b.decode("utf-8", errors="replace") for b in broken_utf8()]
    # Libraries of different Unicode versions differ in what was assigned in between.
    return [text for text in out if all(unicodedata.category(c) != "Cn" for c in text)]
