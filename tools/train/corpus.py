"""Text that the built-in models learn: stories from a grammar, sums, passages to repeat, summaries.

    python3 corpus.py --documents 20 --seed 1        prints documents, separated by <|end|>

Everything is generated here, so it may be published. The sums in HELD_OUT are never asked.
A document is a list of (text, learnt) pieces: the loss skips the pieces that are not learnt.
"""
import argparse
import random

HELD_OUT = {(2, 2), (3, 4), (7, 5), (9, 9), (1, 8), (6, 3), (0, 7), (5, 5), (8, 6), (4, 9),
            (2, 7), (3, 0), (6, 6), (9, 1), (5, 8), (1, 1), (7, 2), (8, 3), (4, 5), (0, 4)}

HEROES = "Tom Lily Max Anna Ben Mia Sam Zoe Leo".split()
OTHERS = "Ida Finn Nora Omar Ruby Hugo Vera Eli June".split()    # apart, so that no story has two of one name
ANIMALS = "fox cat dog bear bird rabbit mouse frog duck hen horse goat".split()
KINDS = "small big happy shy brave young quiet clever kind busy".split()
PLACES = ("in the forest|in the village|in the garden|in the old mill|on the farm|in the valley|"
          "in the castle|in the town|on the hill|in the meadow|by the sea|near the river").split("|")
COLOURS = "red blue green yellow white black golden silver".split()
THINGS = "ball book key lamp boat kite stone hat drum bell ring map letter cup".split()
WEATHER = "sunny rainy windy cold warm foggy snowy".split()
FEELINGS = "happy proud tired surprised curious sad".split()
FRIENDS = "friend neighbour teacher cousin".split()
FOODS = "bread soup cake honey apples cheese milk nuts".split()
COMMON = """
    about after again air also answer any arm back bank base bed best better bit black block board body bridge bright bring brother
    build call can car care chair change child city class clean clear close cloud coat code come cook corn count cover
    cross cup dark day deep door down draw dream dress drink drive dry dust each ear early earth east easy edge empty end
    even every eye face fact fall far fast field fire first fish floor flower fly food foot form four free fresh from
    full game gate give glass go gold good grandmother grass great ground group hair half hand hard have head hear heart help here
    high home hope hour house idea iron island join just keep kind king kitchen lake land large last late learn leave
    left light line list long look lost loud love low make many mark market meet middle mile mind month moon more
    morning most mountain mouth move much music near neck need never next night north nose note now number ocean off
    often oil only open order other over page paint paper part path pen people picture piece place plain plane plant
    plate play point pool power press queen question quick rain read ready rest rice ride right road rock roof room
    root rope round run salt sand school season second seed ship shoe shop short side silver simple sing sister sit sky sleep
    slow smile snow soft some song soon sound south space spring square star start station step still store storm
    story straight street strong sugar summer sun sweet swim table tail take tall tell test thank thick thin think
    three tie time today top touch track trade train travel tree true turn two under until very voice wait walk wall
    want war watch water wave way week well west wheel when wide wild wind window winter wish wood word work world
    write year yes
""".split()
WORDS = list(dict.fromkeys(HEROES + OTHERS + ANIMALS + KINDS + COLOURS + THINGS + WEATHER + FEELINGS + FRIENDS + FOODS + COMMON))


def pick(r, words):
    """One of the words, the first ones more often: in real text, too, some words are common."""
    return r.choices(words, [1 / (i + 4) for i in range(len(words))])[0]


def middle(r, name, other, thing, colour, weather):
    """What happens to the thing: it is found, given, or lost and found again."""
    happens = r.random()
    if happens < 0.3:
        return [f"One {weather} evening, {name} lost a {colour} {thing}.",
                f"{name} was sad and looked for the {thing} everywhere.",
                r.choice([f"{other} helped, and they found the {thing} under a tree.",
                          f"Then {other} saw the {thing} {pick(r, PLACES)}."])]
    if happens < 0.7:
        first = f"One {weather} day, {name} found a {colour} {thing}."
    else:
        first = f"One {weather} morning, {other} gave {name} a {colour} {thing}."
    return [first,
            r.choice([f"{name} was {pick(r, FEELINGS[:5])} and showed the {thing} to {other}.",
                      f"\"Look at my {thing}!\" said {name}.",
                      f"{name} put the {thing} in a {pick(r, COLOURS)} box."]),
            r.choice([f"{other} said, \"What a nice {thing}!\"",
                      f"\"It is the best {thing} of all,\" said {other}."])]


def story(r):
    """A short story, as a list of sentences: two names, an animal and a thing that stay the same."""
    name, other = pick(r, HEROES), pick(r, OTHERS)
    animal, friend, thing, colour = pick(r, ANIMALS), pick(r, FRIENDS), pick(r, THINGS), pick(r, COLOURS)
    lines = [f"Once upon a time there was a {pick(r, KINDS)} {animal} named {name}.",
             f"{name} lived {pick(r, PLACES)} with a {friend} named {other}."]
    lines += middle(r, name, other, thing, colour, pick(r, WEATHER))
    lines += r.sample([f"They had some {pick(r, FOODS)} together.",
                       f"Then it was {pick(r, WEATHER)}, so they went home.",
                       f"They sang a song about the {colour} {thing}.",
                       f"The {animal} and the {friend} laughed."], r.randint(0, 2))
    lines.append(r.choice([f"{name} was {pick(r, FEELINGS[:2])} and slept well.",
                           f"From that day, {name} and {other} were good friends.",
                           "And that was the end of a good day."]))
    return lines


def one_sum(r):
    """A question and its answer; never one of the HELD_OUT questions."""
    while True:
        a, b = (r.randint(0, 9 if r.random() < 0.8 else 99) for _ in range(2))
        if (a, b) not in HELD_OUT:
            return f"What is {a}+{b}?\nThe answer is {a + b}. {a}+{b} = {a + b}."


def sums(r):
    """Mostly one question, so that generation ends after the answer."""
    return [("\n".join(one_sum(r) for _ in range(1 if r.random() < 0.8 else r.randint(2, 5))), True)]


def passage(r, longest):
    """(text, predictable): sentences of a story, or words in no order, which only copying gets right."""
    most = r.choice((min(10, longest), longest, longest))
    if r.random() < 0.4:
        lines = story(r)
        first = r.randrange(len(lines))
        some = lines[first:first + 1 + most // 10] if r.random() < 0.5 else r.sample(lines, min(len(lines), 1 + most // 10))
        return " ".join(some), True
    words = [r.choice(WORDS) for _ in range(r.randint(3, most))]
    if r.random() < 0.2:
        words[r.randrange(len(words))] = str(r.randint(0, 99))
    return " ".join(words), False


def repeat(r, longest):
    """A passage and its copy. Words in no order cannot be foreseen: only their copy is learnt."""
    text, predictable = passage(r, longest)
    return [(f"Repeat: {text}\nAnswer:", predictable), (f" {text}", True)]


def summary(r):
    s = story(r)
    return [(f"Summarise: {' '.join(s)}\nSummary: {s[0]} {s[2]} {s[-1]}", True)]


def document(r, longest=55):
    """One document; longest is the longest passage to repeat, in words."""
    kind = r.random()
    if kind < 0.25:
        return [(" ".join(story(r)), True)]
    if kind < 0.40:
        return sums(r)
    if kind < 0.92:
        return repeat(r, longest)
    return summary(r)


def text(pieces):
    return "".join(t for t, _ in pieces)


if __name__ == "__main__":
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--documents", type=int, default=20)
    p.add_argument("--seed", type=int, default=1)
    a = p.parse_args()
    source = random.Random(a.seed)
    for _ in range(a.documents):
        print(text(document(source)) + "<|end|>")
