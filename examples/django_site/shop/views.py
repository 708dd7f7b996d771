# SPDX-License-Identifier: MIT
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
    with transaction.atomic():
        job = Import.objects.create(text=request.FILES["file"].read().decode())
        job.result_id = import_books.enqueue(job.pk).id
        job.save()
    return redirect(f"/imports/{job.pk}/")


def import_progress(request: HttpRequest, import_id: int) -> HttpResponse:
    job = get_object_or_404(Import, pk=import_id)
    result = import_books.get_result(str(job.result_id))
    told = result.run.progress  # None until the task has told something.
    return JsonResponse(
        {
            "percent": 0 if told is None else told.percent,
            "message": "waiting" if told is None else told.message,
            "done_about": None if told is None else told.eta,
            "refused": job.refused,
            "finished": result.is_finished,
        }
    )
