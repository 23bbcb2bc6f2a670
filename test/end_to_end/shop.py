"""A web application with a fast and a slow view, which test/end_to_end/web.py records: `gunicorn shop:app`.
SPDX-License-Identifier: MIT"""
import flask

app = flask.Flask(__name__)
BOOKS = [{"title": f"A very long title, which is that of book {number}", "price": number * 7919 % 100} for number in range(200)]


def distance(one, other):
    """The number of changes that make ONE of OTHER."""
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        before, row[0] = row[0], i
        for j, there in enumerate(other, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (letter != there))
    return row[-1]


@app.route("/book/<int:number>")
def show_book(number):
    return flask.jsonify(BOOKS[number % len(BOOKS)])


@app.route("/similar/<title>")
def find_similar(title):
    return flask.jsonify(sorted(BOOKS, key=lambda book: distance(title, book["title"]))[:3])
