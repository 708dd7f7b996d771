# SPDX-License-Identifier: MIT
import csv

from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render

from shop.models import Customer, Import
from shop.tasks import import_books, welcome


def sign_up(request: HttpRequest) -> HttpResponse:
    """A customer and the mail to them are committed together, or not at all."""
    if request.method != "POST":
        return render(request, "shop/sign_up.html")
    with transaction.atomic():
        customer, new = Customer.objects.get_or_create(email=request.POST["email"])
        if new:
            welcome.enqueue(customer.pk)
    return render(request, "shop/sign_up.html", {"customer": customer})


def upload(request: HttpRequest) -> HttpResponse:
    if request.method != "POST":
        return render(request, "shop/upload.html")
    text = request.FILES["file"].read().decode()
    with transaction.atomic():
        job = Import.objects.create(text=text, total=len(list(csv.DictReader(text.splitlines()))))
        import_books.enqueue(job.pk)
    return redirect(f"/imports/{job.pk}/")


def progress(request: HttpRequest, import_id: int) -> HttpResponse:
    job = get_object_or_404(Import, pk=import_id)
    told = {"done": job.done, "total": job.total, "refused": job.refused}
    return JsonResponse(told | {"finished": job.done == job.total})
