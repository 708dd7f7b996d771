# SPDX-License-Identifier: MIT
"""Tests as a project writes them: tasks run inside the test's own transaction."""

from django.core import mail
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import TestCase

from byrote.django.test import assert_enqueued, run_tasks
from shop.models import Book, Import, Report
from shop.tasks import import_books, nightly_report, welcome


class SignUp(TestCase):
    def test_a_new_customer_gets_one_mail(self) -> None:
        self.client.post("/", {"email": "ada@example.com"})
        self.client.post("/", {"email": "ada@example.com"})

        assert_enqueued(welcome)
        [result] = run_tasks()
        self.assertEqual(result.return_value, "welcomed")
        self.assertEqual(len(mail.outbox), 1)


class Imports(TestCase):
    def test_an_import_goes_on_where_it_was_interrupted(self) -> None:
        lines = ["isbn,title,price", *(f"{n},Book {n},9.50" for n in range(250)), "x,broken,free"]
        file = SimpleUploadedFile("books.csv", "\n".join(lines).encode())
        where = self.client.post("/imports/", {"file": file}).url
        job = Import.objects.get()
        job.done = 200
        job.save()

        run_tasks()

        self.assertEqual(Book.objects.count(), 50)
        told = self.client.get(where).json()
        self.assertEqual((told["percent"], told["message"]), (100, "importing"))
        self.assertEqual(len(told["refused"]), 1)
        self.assertTrue(told["finished"])
        import_books.enqueue(job.pk)
        run_tasks()
        self.assertEqual(Book.objects.count(), 50)


class Nightly(TestCase):
    def test_a_report_that_is_written_twice_is_there_once(self) -> None:
        nightly_report.enqueue()
        nightly_report.enqueue()

        run_tasks()

        self.assertEqual(Report.objects.count(), 1)
