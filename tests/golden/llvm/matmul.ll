target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

define i32 @matmul(ptr noalias %A, ptr noalias %B, ptr noalias %C, i64 %k, i32 %num_threads) #0 {
entry:
  %T = alloca [32 x float], align 64
  br label %for.1.entry
for.1.entry:
  br label %for.1.head
for.1.head:
  %i = phi i64 [ 0, %for.1.entry ], [ %i.next, %for.1.latch ]
  %i.more = icmp slt i64 %i, 6
  br i1 %i.more, label %for.1.body, label %for.1.end
for.1.body:
  br label %for.2.entry
for.2.entry:
  br label %for.2.head
for.2.head:
  %j = phi i64 [ 0, %for.2.entry ], [ %j.next, %for.2.latch ]
  %j.more = icmp slt i64 %j, 2
  br i1 %j.more, label %for.2.body, label %for.2.end
for.2.body:
  %.3.at = getelementptr float, ptr %T, i64 0
  store <16 x float> zeroinitializer, ptr %.3.at, align 4
  %.4.at = getelementptr float, ptr %T, i64 16
  store <16 x float> zeroinitializer, ptr %.4.at, align 4
  br label %for.5.entry
for.5.entry:
  br label %for.5.head
for.5.head:
  %r = phi i64 [ 0, %for.5.entry ], [ %r.next, %for.5.latch ]
  %r.more = icmp slt i64 %r, %k
  br i1 %r.more, label %for.5.body, label %for.5.end
for.5.body:
  %.6 = mul i64 %r, 32
  %.7 = mul i64 %j, 16
  %.8 = add i64 %.6, %.7
  %.9.at = getelementptr float, ptr %B, i64 %.8
  %.9 = load <16 x float>, ptr %.9.at, align 4
  %.10 = mul i64 %i, 2
  %.11 = mul i64 %.10, %k
  %.12 = add i64 %.11, %r
  %.13.at = getelementptr float, ptr %A, i64 %.12
  %.13 = load float, ptr %.13.at, align 4
  %.14.lane = insertelement <16 x float> poison, float %.13, i64 0
  %.14 = shufflevector <16 x float> %.14.lane, <16 x float> poison, <16 x i32> zeroinitializer
  %.15.at = getelementptr float, ptr %T, i64 0
  %.15 = load <16 x float>, ptr %.15.at, align 4
  %.16 = call <16 x float> @llvm.fma.v16f32(<16 x float> %.14, <16 x float> %.9, <16 x float> %.15)
  %.17.at = getelementptr float, ptr %T, i64 0
  store <16 x float> %.16, ptr %.17.at, align 4
  %.18.at = getelementptr float, ptr %T, i64 16
  %.18 = load <16 x float>, ptr %.18.at, align 4
  %.19 = mul i64 %i, 2
  %.20 = add i64 %.19, 1
  %.21 = mul i64 %.20, %k
  %.22 = add i64 %.21, %r
  %.23.at = getelementptr float, ptr %A, i64 %.22
  %.23 = load float, ptr %.23.at, align 4
  %.24.lane = insertelement <16 x float> poison, float %.23, i64 0
  %.24 = shufflevector <16 x float> %.24.lane, <16 x float> poison, <16 x i32> zeroinitializer
  %.25 = fmul <16 x float> %.24, %.9
  %.26 = fadd <16 x float> %.18, %.25
  %.27.at = getelementptr float, ptr %T, i64 16
  store <16 x float> %.26, ptr %.27.at, align 4
  br label %for.5.latch
for.5.latch:
  %r.next = add i64 %r, 1
  br label %for.5.head
for.5.end:
  %.28.at = getelementptr float, ptr %T, i64 0
  %.28 = load <16 x float>, ptr %.28.at, align 4
  %.29 = mul i64 %i, 64
  %.30 = mul i64 %j, 16
  %.31 = add i64 %.29, %.30
  %.32.at = getelementptr float, ptr %C, i64 %.31
  store <16 x float> %.28, ptr %.32.at, align 4
  %.33.at = getelementptr float, ptr %T, i64 16
  %.33 = load <16 x float>, ptr %.33.at, align 4
  %.34 = mul i64 %i, 64
  %.35 = add i64 %.34, 32
  %.36 = mul i64 %j, 16
  %.37 = add i64 %.35, %.36
  %.38.at = getelementptr float, ptr %C, i64 %.37
  store <16 x float> %.33, ptr %.38.at, align 4
  br label %for.2.latch
for.2.latch:
  %j.next = add i64 %j, 1
  br label %for.2.head
for.2.end:
  br label %for.1.latch
for.1.latch:
  %i.next = add i64 %i, 1
  br label %for.1.head
for.1.end:
  ret i32 0
}

declare <16 x float> @llvm.fma.v16f32(<16 x float>, <16 x float>, <16 x float>)

attributes #0 = { nounwind "no-builtin-memcpy" }
attributes #1 = { nounwind readnone willreturn }
